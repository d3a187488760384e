"""The users of a broker (ACL 2.0): `config/auth.json` below storePathRootDir, and a migration."""

import logging
from functools import partial
from pathlib import Path

from core_broker.auth.acl2.demands import Mode
from core_broker.auth.acl2.rules import RuleSettings
from core_broker.auth.acl2.tables import AccessTables
from core_broker.auth.gate import Gate
from core_broker.auth.server_settings import check_switches, codes_of, setting_problem
from core_broker.auth.users_file import USERS_FILE, UsersFile
from core_broker.config import BrokerConfig

log = logging.getLogger(__name__)


def users_file(config: BrokerConfig, gate: Gate | None) -> UsersFile | None:
    """Return the users of a broker, None without authenticationEnabled. Raises SettingsError."""
    check_switches(config)
    if not config.authentication_enabled or gate is None:
        return None
    path = Path(config.store_path_root_dir) / "config" / USERS_FILE
    rules = rule_settings(config)
    if not config.migrate_auth_from_v1_enabled:
        return UsersFile(config, path, rules, gate)
    if not config.rocketmq_home:
        raise setting_problem(
            "rocketmqHome", "", "the folder with conf/plain_acl.yml, for the migration"
        )
    return UsersFile(config, path, rules, gate, partial(_with_accounts, Path(config.rocketmq_home)))


def rule_settings(config: BrokerConfig) -> RuleSettings:
    """Return the part of the settings that the rules depend on. Raises SettingsError."""
    return RuleSettings(
        cluster=config.broker_cluster_name,
        is_authorizing=config.authorization_enabled,
        authentication_whitelist=codes_of(
            "authenticationWhitelist", config.authentication_whitelist
        ),
        authorization_whitelist=codes_of("authorizationWhitelist", config.authorization_whitelist),
        mode=Mode(config.authorization_mode),
    )


def _with_accounts(home: Path, tables: AccessTables) -> AccessTables:
    """Add the accounts of ACL 1.0 below a folder. Raises SettingsError."""
    # Only a migration pays for the YAML library.
    from core_broker.broker.acl1_accounts import accounts_of

    migrated = accounts_of(home, tables)
    for warning in migrated.warnings:
        log.warning("migration from ACL 1.0: %s", warning)
    if migrated.created:
        log.info("migration from ACL 1.0: new users %s", ", ".join(migrated.created))
    return migrated.tables
