"""The owner of a server's users and lists: the tables in force, and the rules made of them."""

from collections.abc import Callable

from core_broker.auth.acl2.model import User, UserType
from core_broker.auth.acl2.rules import Acl2Rules, RuleSettings
from core_broker.auth.acl2.tables import AccessTables


class AccessOwner:
    """Holds the tables; each change makes new rules and hands them to `publish`.

    Only the event loop's thread uses an owner.
    """

    def __init__(
        self,
        tables: AccessTables,
        settings: RuleSettings,
        publish: Callable[[Acl2Rules], None],
    ) -> None:
        self._tables = tables
        self._settings = settings
        self._publish = publish
        self._generation = 0
        self._use(tables)

    @property
    def tables(self) -> AccessTables:
        """The users and lists in force."""
        return self._tables

    def change(self, tables: AccessTables) -> None:
        """Replace the tables; requests from now on are decided by the new ones."""
        if tables != self._tables:
            self._use(tables)

    def _use(self, tables: AccessTables) -> None:
        self._tables = tables
        self._generation += 1
        self._publish(Acl2Rules(tables, self._settings, self._generation))


def with_super_users(tables: AccessTables, credentials: list[tuple[str, str]]) -> AccessTables:
    """Return tables in which each (name, password) is a super user, unless the name exists.

    For initAuthenticationUser and innerClientAuthenticationCredentials: later changes of the
    settings change no user, as in RocketMQ.
    """
    for username, password in credentials:
        if username not in tables.users:
            tables = tables.with_user(User(username, password, UserType.SUPER))
    return tables
