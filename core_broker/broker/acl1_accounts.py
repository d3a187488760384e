"""Reading of the accounts of ACL 1.0 for a migration."""

import time
from pathlib import Path

from core_broker.auth.acl1.demands import Mode
from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.files import Acl1Files
from core_broker.auth.acl2.tables import AccessTables
from core_broker.auth.migration import Migrated, migrated
from core_broker.errors import SettingProblem, SettingsError


def accounts_of(home: Path, tables: AccessTables) -> Migrated:
    """Return tables with a user for each account of the files below `home`. Blocks.

    Raises SettingsError for broken files: a start without the accounts would refuse their clients.
    """
    files = Acl1Files(home, Mode.STRICT)
    try:
        rules = files.start(time.time_ns() // 1_000_000)
        return migrated(tables, rules.accounts.values(), rules.white_list, files.secret_keys())
    except (RulesError, OSError) as error:
        problem = f"the accounts of ACL 1.0 cannot be read: {error}"
        raise SettingsError([SettingProblem("migrateAuthFromV1Enabled", problem, "true")]) from None
