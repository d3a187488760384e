"""One generation of the rules of ACL 1.0, and its decisions.

    1 a global white list pattern matches      allowed, without account
    2 no AccessKey, or an unknown one          refused
    3 the account's white address matches      allowed, without signature
    4 the signature differs                    refused
    5 PUB to RMQ_SYS_TRACE_TOPIC               allowed
    6 an admin code, the account is no admin   refused
    7 an admin without listed permissions      allowed
    8 each resource: the listed permission, else the default of its kind

Order, texts and codes are compatible with RocketMQ 4.9.8's PlainPermissionManager. A refusal has
code SYSTEM_ERROR and Java's remark with class, text and place. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from core_broker.auth.acl1.accounts import RETRY_PREFIX, Account
from core_broker.auth.acl1.addresses import AddressPattern, matching_pattern, peer_address
from core_broker.auth.acl1.demands import Mode, Need, demand_of
from core_broker.auth.acl1.permissions import Perm, permits
from core_broker.auth.contracts import (
    STORED_ACTIONS,
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
from core_broker.errors import ProtocolError
from core_broker.remoting.codes import ResponseCode

#: Every account may send traces to the default topic.
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
_EXCEPTION = "org.apache.rocketmq.acl.common.AclException: "
_MANAGER = ", org.apache.rocketmq.acl.plain.PlainPermissionManager."
_VALIDATOR = ", org.apache.rocketmq.acl.plain.PlainAccessValidator."
#: Place in Java of each check, the end of a remark.
_NO_KEY_PLACE = _MANAGER + "validate(PlainPermissionManager.java:664)"
_UNKNOWN_PLACE = _MANAGER + "validate(PlainPermissionManager.java:668)"
_SIGNATURE_PLACE = _MANAGER + "validate(PlainPermissionManager.java:684)"
_ADMIN_PLACE = _MANAGER + "checkPerm(PlainPermissionManager.java:581)"
_DEFAULT_PLACE = _MANAGER + "checkPerm(PlainPermissionManager.java:606)"
_LISTED_PLACE = _MANAGER + "checkPerm(PlainPermissionManager.java:611)"
_PARSE_PLACE = _VALIDATOR + "parse(PlainAccessValidator.java:134)"
_TRACES: Final = Decision(True, f"every account may publish to {TRACE_TOPIC}")
_PERMS: Final = {Action.PUB: Perm.PUB, Action.SUB: Perm.SUB}


@dataclass(frozen=True, slots=True)
class Acl1Rules:
    """Accounts and white list of all files together; never changed."""

    #: The checks in the order of `admit`.
    checks: ClassVar[tuple[Check, ...]] = (
        Check.WHITE_LIST,
        Check.ACCOUNT,
        Check.ACCOUNT_WHITE_LIST,
        Check.SIGNATURE,
        Check.ADMINISTRATOR,
        Check.PERMISSIONS,
    )

    generation: int
    mode: Mode
    accounts: Mapping[str, Account]
    white_list: tuple[AddressPattern, ...]

    def admit(self, address: str, request: Request) -> Identity:
        """Authenticate a request and check what its code needs; raises Refusal."""
        identity = self.identify(address, request)
        if identity.how is not Established.SIGNATURE:
            return identity
        account = self.accounts[identity.account]
        try:
            demand = demand_of(request, self.mode)
        except ProtocolError as error:
            raise _refusal(str(error), _PARSE_PLACE, "unreadable", account.access_key) from None
        if Need(TRACE_TOPIC, Perm.PUB) in demand.needs:
            return identity
        if demand.is_admin_only and not account.is_admin:
            text = (
                f"Need admin permission for request code={request.code}, but "
                f"accessKey={account.access_key} is not"
            )
            raise _refusal(
                text, _ADMIN_PLACE, "admin-only", account.access_key, rule="admin: false"
            )
        for need in demand.needs:
            decision = _decide(account, need)
            if not decision.is_allowed:
                raise Refusal(
                    ResponseCode.SYSTEM_ERROR,
                    decision.remark,
                    "no-permission",
                    account=account.access_key,
                    resource=_resource(need.resource),
                    rule=decision.rule,
                )
        return identity

    def identify(self, address: str, request: Request) -> Identity:
        """Authenticate a request: white list, account, account's white address, signature."""
        identity = self.identity_of(address, request.ext_fields.get(ACCESS_KEY, ""))
        key = identity.signing_key
        if key is not None and not key.accepts(request.ext_fields, request.body):
            text = f"Check signature failed for accessKey={identity.account}"
            raise _refusal(text, _SIGNATURE_PLACE, "bad-signature", identity.account)
        return identity

    def identity_of(self, address: str, access_key: str) -> Identity:
        """Return the identity of an account; only one with a key needs a signature."""
        peer = peer_address(address)
        if matching_pattern(self.white_list, peer) is not None:
            return Identity("", True, Established.WHITE_LIST)  # a name would be unproven
        if not access_key:
            raise _refusal("No accessKey is configured", _NO_KEY_PLACE, "no-account", "")
        account = self.accounts.get(access_key)
        if account is None:
            text = f"No acl config for {access_key}"
            raise _refusal(text, _UNKNOWN_PLACE, "unknown-account", access_key)
        if account.white_address.matches(peer):
            return Identity(access_key, True, Established.ACCOUNT_WHITE_LIST)
        return Identity(access_key, account.is_admin, Established.SIGNATURE, account.signing_key)

    def check_stored(self, address: str, request: Request, topic: str) -> None:
        """Check the permission for the topic of a stored message; raises Refusal."""
        identity = self.identify(address, request)
        if self.mode is Mode.JAVA or identity.how is not Established.SIGNATURE:
            return
        decisions = [
            self.may(identity, address, ResourceKind.TOPIC, topic, action)
            for action in STORED_ACTIONS[request.code]
        ]
        if not any(decision.is_allowed for decision in decisions):
            raise Refusal(
                ResponseCode.SYSTEM_ERROR,
                decisions[0].remark,
                "no-permission",
                account=identity.account,
                resource=_resource(topic),
                rule=decisions[0].rule,
            )

    def may(
        self, identity: Identity, address: str, kind: ResourceKind, name: str, action: Action
    ) -> Decision:
        """Decide about one topic or group, and name the rule.

        Actions but Pub and Sub are administration: only an administrator may do them.
        """
        general = self._general(identity, address)
        if general is not None:
            return general
        account = self.accounts[identity.account]
        perm = _PERMS.get(action)
        if perm is None or kind is ResourceKind.CLUSTER:
            text = f"Need admin permission, but accessKey={account.access_key} is not"
            remark = "" if account.is_admin else _remark(text, _ADMIN_PLACE)
            return Decision(account.is_admin, f"admin: {str(account.is_admin).lower()}", remark)
        if perm is Perm.PUB and kind is ResourceKind.TOPIC and name == TRACE_TOPIC:
            return _TRACES
        prefix = RETRY_PREFIX if kind is ResourceKind.GROUP else ""
        if name.startswith(RETRY_PREFIX):
            perm = Perm.SUB
        return _decide(account, Need(prefix + name, perm))

    def rulings(self, identity: Identity, address: str, request: Request) -> list[Ruling]:
        """Return the decisions about an identified request; empty: a signature is enough.

        Raises ProtocolError for a request without the fields that its code needs.
        """
        demand = demand_of(request, self.mode)
        general = self._general(identity, address)
        if Need(TRACE_TOPIC, Perm.PUB) in demand.needs and general is None:
            general = _TRACES
        account = self.accounts.get(identity.account)
        if demand.is_admin_only:
            is_admin = account is not None and account.is_admin
            rule = f"admin: {str(is_admin).lower()}"
            return [Ruling("", general or Decision(is_admin, rule))]
        if general is not None or account is None:
            decision = general or Decision(False, "no such account")
            return [Ruling(_resource(need.resource), decision) for need in demand.needs]
        return [_ruling(account, need) for need in demand.needs]

    def _general(self, identity: Identity, address: str) -> Decision | None:
        """Return the decision about every resource, by white lists or an absent account."""
        if identity.how is Established.WHITE_LIST:
            pattern = matching_pattern(self.white_list, peer_address(address))
            return Decision(True, f"globalWhiteRemoteAddresses: {pattern.text if pattern else ''}")
        account = self.accounts.get(identity.account)
        if account is None:
            text = f"No acl config for {identity.account}"
            return Decision(False, "no such account", _remark(text, _UNKNOWN_PLACE))
        if identity.how is Established.ACCOUNT_WHITE_LIST:
            return Decision(True, f"whiteRemoteAddress: {account.white_address.text}")
        return None


def _ruling(account: Account, need: Need) -> Ruling:
    """The decision about a resource; a default is shown behind the listed permission."""
    decision = _decide(account, need)
    unlisted = replace(account, perms={}, is_admin=False)
    rules = dict.fromkeys((decision.rule, _decide(unlisted, need).rule))
    return Ruling(_resource(need.resource), decision, tuple(rules))


def _decide(account: Account, need: Need) -> Decision:
    """Decide about one resource of an account whose signature is right."""
    if account.is_admin and not account.perms:
        return Decision(True, "admin: true")
    is_group = need.resource.startswith(RETRY_PREFIX)
    name = need.resource.removeprefix(RETRY_PREFIX) if is_group else need.resource
    listed = account.perms.get(need.resource)
    if listed is not None:
        granted = listed
        place, rule = _LISTED_PLACE, f"{'group' if is_group else 'topic'}Perms: {name}="
    elif is_group:
        granted = account.default_group_perm
        place, rule = _DEFAULT_PLACE, "defaultGroupPerm: "
    else:
        granted = account.default_topic_perm
        place, rule = _DEFAULT_PLACE, "defaultTopicPerm: "
    rule += granted.name or "DENY"
    if permits(granted, need.perm):
        return Decision(True, rule)
    text = f"No default permission for {'group' if is_group else 'topic'}:{name}"
    return Decision(False, rule, _remark(text, place))


def _resource(resource: str) -> str:
    if resource.startswith(RETRY_PREFIX):
        return f"Group:{resource.removeprefix(RETRY_PREFIX)}"
    return f"Topic:{resource}"


def _remark(text: str, place: str) -> str:
    return _EXCEPTION + text + place


def _refusal(text: str, place: str, reason: str, account: str, *, rule: str = "") -> Refusal:
    return Refusal(
        ResponseCode.SYSTEM_ERROR, _remark(text, place), reason, account=account, rule=rule
    )
