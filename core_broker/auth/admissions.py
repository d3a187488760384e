"""What the gate has admitted, for the fast path: accounts with their keys, topics and groups.

A fast path takes a signed request when the gate has admitted a request with the same code from the
same address, account, topic and group, and the signature of the new request is right. Otherwise the
request is for the slow path, where the gate decides. So the fast path needs no rules of its own.

Rules decide about the requests of `RESOURCES` by account, address, topic and group alone. Requests
with a retry topic are not remembered, because more fields decide there. The body of a heartbeat
names topics and groups, so a heartbeat is remembered by its signature: equal signatures have equal
bodies.
"""

from collections.abc import Collection
from struct import Struct

from core_broker.auth.contracts import GUESSES, Established, Identity, Refusal, Request
from core_broker.auth.signature import SIGNATURE, SigningKey
from core_broker.remoting.codes import RequestCode as Code

#: Ext fields that rules decide by: topic and group of a request, by code.
RESOURCES: dict[int, tuple[str, ...]] = {
    Code.SEND_MESSAGE_V2: ("b",),
    Code.SEND_BATCH_MESSAGE: ("b",),
    Code.PULL_MESSAGE: ("topic", "consumerGroup"),
    Code.LITE_PULL_MESSAGE: ("topic", "consumerGroup"),
    Code.UPDATE_CONSUMER_OFFSET: ("topic", "consumerGroup"),
    Code.HEART_BEAT: (SIGNATURE,),
}
#: Maximum remembered accounts, white addresses and resources together; all are forgotten then.
ADMISSIONS_MAX = 10_000

_RETRY_PREFIX = "%RETRY%"
_pack_length = Struct(">I").pack


class AdmittedAccount:
    """An account at one address: the key of its signatures, and its admitted resources."""

    __slots__ = ("kernel_key", "resources", "signing_key")

    def __init__(self, signing_key: SigningKey) -> None:
        self.signing_key = signing_key
        #: The kernel's form of the signing key, made by kernel/guard.py at the first use.
        self.kernel_key: object = None
        self.resources: set[bytes] = set()


class Admissions:
    """Remembers admitted requests until the rules change. `codes` are the codes to remember."""

    def __init__(self, codes: Collection[int] = RESOURCES) -> None:
        #: By `joined` address and account.
        self.accounts: dict[bytes, AdmittedAccount] = {}
        #: Addresses of the global white list: the gate admits every request from there.
        self.white_addresses: set[bytes] = set()
        self._codes = codes
        self._count = 0

    def forget(self) -> None:
        """Forget everything: other rules are in force."""
        self.accounts.clear()
        self.white_addresses.clear()
        self._count = 0

    def note(self, address: str, request: Request, identity: Identity) -> None:
        """Remember an admitted request."""
        if identity.how is Established.WHITE_LIST:
            if address.encode() not in self.white_addresses:
                self.white_addresses.add(address.encode())
                self._count += 1
        elif (
            request.code in self._codes
            and identity.how is Established.SIGNATURE
            and identity.signing_key is not None
        ):
            names = [request.ext_fields.get(field, "") for field in RESOURCES[request.code]]
            if not names[0].startswith(_RETRY_PREFIX):
                self._note_resources(
                    joined(address, identity.account),
                    identity.signing_key,
                    joined(str(request.code), *names),
                )
        if self._count > ADMISSIONS_MAX:
            self.forget()

    def _note_resources(self, who: bytes, signing_key: SigningKey, resources: bytes) -> None:
        account = self.accounts.get(who)
        if account is None:
            account = self.accounts[who] = AdmittedAccount(signing_key)
            self._count += 1
        if resources not in account.resources:
            account.resources.add(resources)
            self._count += 1

    def refused(self, address: str, refusal: Refusal) -> None:
        """Forget an account at an address after a wrong signature: the account may have to wait."""
        if refusal.reason in GUESSES:
            account = self.accounts.pop(joined(address, refusal.account), None)
            if account is not None:
                self._count -= 1 + len(account.resources)


def joined(*names: str) -> bytes:
    """Return names as one key: the length of each, 32 bits, and its UTF-8 bytes."""
    parts = [name.encode("utf-8", "surrogatepass") for name in names]
    return b"".join([_pack_length(len(part)) + part for part in parts])
