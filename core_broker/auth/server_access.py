"""Access control of a name server or a controller: users of its own, a gate before every handler.

The users and lists are those of ACL 2.0, in a file `auth.json`. Without authenticationEnabled there
is no gate.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core_broker.auth.acl2.demands import DemandsOf
from core_broker.auth.acl2.rules import RuleSettings
from core_broker.auth.back_off import BackOff
from core_broker.auth.contracts import Request
from core_broker.auth.gate import Gate, Observer
from core_broker.auth.refusals import RefusalLog
from core_broker.auth.server_settings import check_switches, codes_of, setting_problem
from core_broker.auth.user_handlers import user_handlers
from core_broker.auth.users_file import USERS_FILE, UsersFile
from core_broker.config import AccessSettings
from core_broker.monitoring.metrics import Family
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Dispatch


class ServerAccess:
    """The gate of a server, its users, and the handlers of the codes 3001 to 3010.

    The users are in `folder`, which comes from the setting `folder_key`. `demands_of` has the
    permissions that the server's codes need, on resources of `cluster`.
    """

    def __init__(
        self,
        config: AccessSettings,
        folder: Path,
        folder_key: str,
        demands_of: DemandsOf,
        cluster: str = "",
    ) -> None:
        """Raise SettingsError for settings of no use; refuse all requests until `load`."""
        self.refusals = RefusalLog()
        observers: list[Observer] = [self.refusals]
        if config.max_access_failures:
            observers.append(
                BackOff(config.max_access_failures, config.max_access_back_off_seconds)
            )
        self._gate = Gate(tuple(observers))
        self._folder_key = folder_key
        rules = _rule_settings(config, demands_of, cluster)
        self._users = UsersFile(config, folder / USERS_FILE, rules, self._gate)
        self.handlers: dict[int, Dispatch] = user_handlers(
            self._users.owner,
            self._users.file,
            self._gate,
            passwords_readable=config.user_password_readable,
        )

    def load(self) -> None:
        """Read the users. Blocks; raises StoreCorrupt and SettingsError for an unreadable file."""
        try:
            self._users.load()
        except OSError as error:
            path = str(self._users.file.path)
            reason = error.strerror or str(error)
            raise setting_problem(
                self._folder_key, path, f"a folder with a usable {USERS_FILE} ({reason})"
            ) from None

    def admit(self, connection: Connection, request: RemotingCommand) -> None:
        """Raise Refusal, which is the answer, for a request that the rules refuse."""
        self._gate.admit(connection.peer_host, Request.of(request))

    async def drain(self) -> None:
        """Wait until every accepted change is on disk."""
        await self._users.file.drain()

    def varz(self) -> dict[str, Any]:
        """Return the counters for /varz."""
        return {
            "generations": list(self._gate.generations),
            "refused": dict(self.refusals.counts),
        }

    def families(self) -> Iterator[Family]:
        """Yield the metrics of refused requests."""
        denied = self.refusals.counts.items()
        yield Family("rocketmq_auth_refusals_total", [({"reason": k}, n) for k, n in denied])


def server_access(
    config: AccessSettings,
    folder: Path,
    folder_key: str,
    demands_of: DemandsOf,
    cluster: str = "",
) -> ServerAccess | None:
    """Return the access control of a server, None without authenticationEnabled.

    Raises SettingsError.
    """
    check_switches(config)
    if not config.authentication_enabled:
        return None
    return ServerAccess(config, folder, folder_key, demands_of, cluster)


def _rule_settings(config: AccessSettings, demands_of: DemandsOf, cluster: str) -> RuleSettings:
    return RuleSettings(
        cluster=cluster,
        is_authorizing=config.authorization_enabled,
        authentication_whitelist=codes_of(
            "authenticationWhitelist", config.authentication_whitelist
        ),
        authorization_whitelist=codes_of("authorizationWhitelist", config.authorization_whitelist),
        demands_of=demands_of,
    )
