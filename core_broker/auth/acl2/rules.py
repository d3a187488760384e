"""One generation of users and lists, as the gate asks it.

Authentication (2.0): user, status and signature. Authorization: every demand of the request needs
an entry that allows one of its actions. Compatible in codes and remarks with the authentication and
authorization handlers of RocketMQ 5.3.3. Unlike there, authorization never believes a name without
a signature, and a disabled user has no permission.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import ClassVar, Final, NamedTuple

from core_broker.auth.acl2.demands import (
    Demand,
    DemandsOf,
    Mode,
    Unreadable,
    demands_of,
    stored_demand,
    topic_demand,
)
from core_broker.auth.acl2.model import (
    SUBJECT_PREFIX,
    TYPES_OF_KINDS,
    PolicyEntry,
    PolicyType,
    RuleDecision,
    User,
    UserStatus,
    title,
)
from core_broker.auth.acl2.priority import decisive, decisive_in_java
from core_broker.auth.acl2.source_addresses import Peer, peer_address
from core_broker.auth.acl2.tables import AccessTables
from core_broker.auth.contracts import (
    MATCHING_MAX,
    Action,
    Check,
    Decision,
    Established,
    Identity,
    Refusal,
    Request,
    ResourceKind,
    Ruling,
)
from core_broker.auth.signature import ACCESS_KEY
from core_broker.remoting.codes import ResponseCode

_SUPER_RULE: Final = "super user"
_NOT_AUTHORIZING: Final = Decision(is_allowed=True, rule="authorizationEnabled=false")
_NO_NAME: Final = "username cannot be null."
_NOT_AUTHORIZED: Final = "Authorization failed. Please verify your access rights and try again."


class RuleSettings(NamedTuple):
    """What the rules depend on: settings of a server, and the demands of its request codes."""

    cluster: str
    is_authorizing: bool = True
    #: Request codes that need no signature, and those that need no permission.
    authentication_whitelist: frozenset[int] = frozenset()
    authorization_whitelist: frozenset[int] = frozenset()
    mode: Mode = Mode.STRICT
    #: The demands of a broker's codes, or of another server's.
    demands_of: DemandsOf = demands_of


class Acl2Rules:
    """The rules of ACL 2.0; implements `contracts.Rules`."""

    #: The checks in the order of `admit`.
    checks: ClassVar[tuple[Check, ...]] = (
        Check.ACCOUNT,
        Check.SIGNATURE,
        Check.ADMINISTRATOR,
        Check.PERMISSIONS,
    )

    def __init__(self, tables: AccessTables, settings: RuleSettings, generation: int) -> None:
        self.generation = generation
        self._tables = tables
        self._settings = settings
        self._decisive = decisive_in_java if settings.mode is Mode.JAVA else decisive

    def identify(self, address: str, request: Request) -> Identity:
        """Authenticate: user, status, signature; raises Refusal.

        A request with a code of authenticationWhitelist and without a valid signature gets an
        identity without account.
        """
        is_listed = request.code in self._settings.authentication_whitelist
        try:
            user = self._enabled_user(request.ext_fields.get(ACCESS_KEY, ""))
            if not user.key.accepts(request.ext_fields, request.body):
                raise _refusal("check signature failed.", "bad-signature", user.username)
        except Refusal:
            if not is_listed:
                raise
            return Identity("", is_admin=False, how=Established.NOT_CHECKED)
        return _signer(user)

    def identity_of(self, address: str, account: str) -> Identity:
        """Return the identity of an enabled user; raises Refusal."""
        return _signer(self._enabled_user(account))

    def _enabled_user(self, name: str) -> User:
        if not name.strip():
            raise _refusal(_NO_NAME, "no-account")
        user = self._tables.users.get(name)
        if user is None:
            raise _refusal(f"User:{name} is not found.", "unknown-account", name)
        if user.status is UserStatus.DISABLE:
            raise _refusal(f"User:{name} is disabled.", "disabled-account", name)
        return user

    def admit(self, address: str, request: Request) -> Identity:
        """Authenticate, and check all demands of the code; raises Refusal."""
        identity = self.identify(address, request)
        settings = self._settings
        if (
            identity.is_admin
            or not settings.is_authorizing
            or request.code in settings.authorization_whitelist
        ):
            return identity
        try:
            demands = settings.demands_of(request, settings.cluster, settings.mode)
        except Unreadable as error:
            raise _refusal(
                "parse authorization context error.", "unreadable", identity.account, str(error)
            ) from None
        if demands is None:
            remark = f"User:{identity.account} has no permission: request code {request.code} "
            raise _refusal(
                remark + "needs a super user.", "admin-only", identity.account, "super user"
            )
        if demands and not identity.account:
            raise _refusal(_NOT_AUTHORIZED, "no-account")
        self._require(identity, address, demands)
        return identity

    def check_stored(self, address: str, request: Request, topic: str) -> None:
        """Check the permission for the topic of a stored message; raises Refusal."""
        settings = self._settings
        if (
            settings.mode is Mode.JAVA
            or not settings.is_authorizing
            or request.code in settings.authorization_whitelist
        ):
            return
        identity = self.identify(address, request)
        if not identity.account:
            raise _refusal(_NOT_AUTHORIZED, "no-account")
        self._require(identity, address, [stored_demand(request.code, topic)])

    def _require(self, identity: Identity, address: str, demands: Iterable[Demand]) -> None:
        peer = peer_address(address)
        for demand in demands:
            decision = self._decide(identity, address, peer, demand)
            if not decision.is_allowed:
                raise Refusal(
                    ResponseCode.NO_PERMISSION,
                    decision.remark,
                    "no-permission",
                    account=identity.account,
                    resource=f"{demand.kind}:{demand.name}",
                    rule=decision.rule,
                )

    def may(
        self, identity: Identity, address: str, kind: ResourceKind, name: str, action: Action
    ) -> Decision:
        """Decide about one resource and one action."""
        if not self._settings.is_authorizing:
            return _NOT_AUTHORIZING
        actions = (action,)
        is_topic = kind is ResourceKind.TOPIC
        demand = topic_demand(name, actions) if is_topic else Demand(kind, name, actions)
        return self._decide(identity, address, peer_address(address), demand)

    def rulings(self, identity: Identity, address: str, request: Request) -> list[Ruling]:
        """Return the decisions about an identified request; empty: a signature is enough.

        Raises Unreadable for a request without the fields that its code needs.
        """
        settings = self._settings
        if not settings.is_authorizing:
            return [Ruling("", _NOT_AUTHORIZING)]
        if request.code in settings.authorization_whitelist:
            return []
        demands = settings.demands_of(request, settings.cluster, settings.mode)
        if demands is None:
            return [Ruling("", Decision(identity.is_admin, _SUPER_RULE))]
        peer = peer_address(address)
        return [
            Ruling(
                f"{demand.kind}:{demand.name}",
                self._decide(identity, address, peer, demand),
                tuple(islice(self._matching(identity, peer, demand), MATCHING_MAX)),
            )
            for demand in demands
        ]

    def _matching(self, identity: Identity, peer: Peer | None, demand: Demand) -> Iterator[str]:
        """Yield the matching entries in order of priority: the first one decides."""
        acl = self._tables.acls.get(SUBJECT_PREFIX + identity.account)
        if acl is None or identity.is_admin:
            return
        for kind in PolicyType:
            matching = list(_matching(acl.entries(kind), peer, demand))
            while matching:
                first = self._decisive(matching)
                matching.remove(first)
                yield str(first) if kind is PolicyType.CUSTOM else f"{title(kind)} {first}"

    def _decide(
        self, identity: Identity, address: str, peer: Peer | None, demand: Demand
    ) -> Decision:
        user = self._tables.users.get(identity.account)
        if user is None or user.status is UserStatus.DISABLE:
            return Decision(False, "no such user", f"User:{identity.account} not found.")
        if user.is_super:
            return Decision(is_allowed=True, rule=_SUPER_RULE)
        text = (
            f"User:{user.username} has no permission to access {demand.kind}:{demand.name} "
            f"from {address}, "
        )
        entry = self._deciding(user, peer, demand)
        if entry is None:
            return Decision(False, "no entry", text + "no matched policies.")
        if entry.decision is RuleDecision.DENY:
            return Decision(False, str(entry), text + "the decision is deny.")
        return Decision(is_allowed=True, rule=str(entry))

    def _deciding(self, user: User, peer: Peer | None, demand: Demand) -> PolicyEntry | None:
        acl = self._tables.acls.get(SUBJECT_PREFIX + user.username)
        if acl is None:
            return None
        for kind in PolicyType:
            matching = list(_matching(acl.entries(kind), peer, demand))
            if matching:
                return self._decisive(matching)
        return None


def _signer(user: User) -> Identity:
    return Identity(user.username, user.is_super, Established.SIGNATURE, user.key)


def _matching(
    entries: Iterable[PolicyEntry], peer: Peer | None, demand: Demand
) -> Iterable[PolicyEntry]:
    kind = TYPES_OF_KINDS[demand.kind]
    return (
        entry
        for entry in entries
        if entry.resource.matches(kind, demand.name)
        and any(map(entry.has_action, demand.actions))
        and entry.sources.has(peer)
    )


def _refusal(remark: str, reason: str, account: str = "", rule: str = "") -> Refusal:
    return Refusal(ResponseCode.NO_PERMISSION, remark, reason, account=account, rule=rule)
