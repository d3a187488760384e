"""Small rules of access control for tests of the gate: two accounts with topics and groups."""

from collections.abc import Mapping

from core_broker.auth.admissions import Admissions
from core_broker.auth.contracts import (
    Action,
    Decision,
    Established,
    Identity,
    Refusal,
    Request,
    ResourceKind,
)
from core_broker.auth.gate import Gate
from core_broker.auth.signature import ACCESS_KEY, SIGNATURE, SigningKey, signed_fields
from core_broker.remoting.bodies import HeartbeatData, decode_request
from core_broker.remoting.codes import RequestCode as Code

SECRETS = {"alice": "12345678", "bob": "87654321"}
#: What each account may do: bob may do nothing with T.
PERMITTED = {
    "alice": {("T", Action.PUB), ("T", Action.SUB), ("g", Action.SUB)},
    "bob": {("Other-Topic", Action.PUB), ("g", Action.SUB)},
}
#: The address of the wires of two_paths.py.
WIRE_ADDRESS = "10.1.2.3"


class SmallRules:
    """Rules in the manner of ACL 1.0."""

    def __init__(
        self,
        generation: int = 1,
        permitted: Mapping[str, set[tuple[str, Action]]] | None = None,
        white: frozenset[str] = frozenset(),
    ) -> None:
        self.generation = generation
        self._permitted = PERMITTED if permitted is None else permitted
        self._white = white
        self._keys = {name: SigningKey(secret) for name, secret in SECRETS.items()}

    def key_of(self, account: str) -> SigningKey | None:
        return self._keys.get(account)

    def identify(self, address: str, request: Request) -> Identity:
        if address in self._white:
            return Identity("", False, Established.WHITE_LIST)
        account = request.ext_fields.get(ACCESS_KEY, "")
        if not account:
            raise Refusal(1, "No accessKey is configured", "no-account")
        key = self._keys.get(account)
        if key is None:
            raise Refusal(1, f"No acl config for {account}", "unknown-account", account=account)
        if not key.accepts(request.ext_fields, request.body):
            raise Refusal(1, "Check signature failed", "bad-signature", account=account)
        return Identity(account, False, Established.SIGNATURE, key)

    def admit(self, address: str, request: Request) -> Identity:
        identity = self.identify(address, request)
        for kind, name, action in _demands(request):
            decision = self.may(identity, address, kind, name, action)
            if not decision.is_allowed:
                raise Refusal(
                    1,
                    decision.remark,
                    "no-permission",
                    account=identity.account,
                    resource=f"{kind}:{name}",
                )
        return identity

    def may(
        self, identity: Identity, address: str, kind: ResourceKind, name: str, action: Action
    ) -> Decision:
        if identity.how is Established.WHITE_LIST or name == "open":
            return Decision(True, "white list")
        is_allowed = (name, action) in self._permitted.get(identity.account, ())
        return Decision(
            is_allowed, "list", "" if is_allowed else f"No permission for {kind}:{name}"
        )


def _demands(request: Request) -> list[tuple[ResourceKind, str, Action]]:
    fields = request.ext_fields
    if request.code in (Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE):
        return [(ResourceKind.TOPIC, fields.get("b", ""), Action.PUB)]
    if request.code in (Code.PULL_MESSAGE, Code.LITE_PULL_MESSAGE, Code.UPDATE_CONSUMER_OFFSET):
        return [
            (ResourceKind.TOPIC, fields.get("topic", ""), Action.SUB),
            (ResourceKind.GROUP, fields.get("consumerGroup", ""), Action.SUB),
        ]
    if request.code == Code.HEART_BEAT:
        beat = decode_request(HeartbeatData, bytes(request.body))
        groups = [consumer.group_name for consumer in beat.consumer_data_set]
        return [(ResourceKind.GROUP, name, Action.SUB) for name in groups]
    return []


def gate_with(*rules: SmallRules) -> Gate:
    """A gate with rules of ACL 1.0, the small rules without an argument."""
    gate = Gate(admissions=Admissions())
    for each in rules or (SmallRules(),):
        gate.use_acl1(each)
    return gate


def signed(fields: Mapping[str, str], body: bytes = b"", account: str = "alice") -> dict[str, str]:
    """The fields with AccessKey and Signature of an account."""
    signing = {**fields, ACCESS_KEY: account}
    key = SigningKey(SECRETS.get(account, "unknown1"))
    return {**signing, SIGNATURE: key.sign(signed_fields(signing), body)}
