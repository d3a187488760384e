"""The bodies of DLedger's requests and answers: compact JSON in frames of remoting commands.

    {"code":200,"group":"g","leaderId":"n0","localId":"n0","remoteId":"n1","term":3}

Members are sorted by name, as fastjson writes them; members without a value are absent; enums are
names, bytes are base64. Unknown members are ignored. A body of another form raises ProtocolError.
Compatible with io.openmessaging.storage.dledger.protocol of DLedger 0.3.1.2.
"""

from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from core_broker.dledger.codes import DLedgerCode, DLedgerRequest, PushKind, VoteResult
from core_broker.errors import ProtocolError
from core_broker.remoting.ext_fields import DECODE_FAULTS, Int, Long

#: Ids of members and groups, as far as a peer may name them.
Name = Annotated[str, msgspec.Meta(max_length=255)]
#: Entries of one push, and indexes of one read.
ENTRIES_MAX = 4096
#: Indexes, terms and positions of peers. One at the end of their range would stop the group for
#: ever: no later term follows, and no file has the offset.
Count = Annotated[int, msgspec.Meta(ge=-1, le=2**48)]
Position = Annotated[int, msgspec.Meta(ge=-1, le=2**60)]

Text = Name | UnsetType | None


class Entry(Struct, rename="camel", kw_only=True, frozen=True):
    """One entry of the log. The checksums are 0: DLedger computes none."""

    body: bytes
    body_crc: Int = 0
    chain_crc: Int = 0
    channel: Int = 0
    index: Count
    magic: Int = 1
    #: Position in the data files.
    pos: Position
    #: Bytes in the data files: header and body.
    size: Int
    term: Count


class Request(Struct, rename="camel", kw_only=True):
    """What every request has; the fields of all structs are sorted by their names in JSON."""

    code: Int = DLedgerCode.SUCCESS
    group: Text = UNSET
    leader_id: Text = UNSET
    #: The sender.
    local_id: Text = UNSET
    #: The receiver.
    remote_id: Text = UNSET
    term: Count = -1


class HeartbeatRequest(Request, rename="camel", kw_only=True):
    """A leader lives."""


class MetadataRequest(Request, rename="camel", kw_only=True):
    """A client asks for leader and peers."""


class VoteRequest(Struct, rename="camel", kw_only=True):
    """A candidate, `leader_id`, asks for a vote in `term`."""

    code: Int = DLedgerCode.SUCCESS
    group: Text = UNSET
    leader_id: Text = UNSET
    ledger_end_index: Count = -1
    ledger_end_term: Count = -1
    local_id: Text = UNSET
    remote_id: Text = UNSET
    term: Count = -1


class PushRequest(Struct, rename="camel", kw_only=True):
    """A leader appends, commits, compares or truncates; `batch_entry` or `entry` has the entries.

    `batch`, `count`, `first_entry_index` and `last_entry_index` are derived; receivers ignore them.
    """

    batch: bool | UnsetType = UNSET
    batch_entry: Annotated[list[Entry], msgspec.Meta(max_length=ENTRIES_MAX)] = []
    code: Int = DLedgerCode.SUCCESS
    commit_index: Count = -1
    count: Int | UnsetType = UNSET
    entry: Entry | UnsetType | None = UNSET
    first_entry_index: Long | UnsetType = UNSET
    group: Text = UNSET
    last_entry_index: Long | UnsetType = UNSET
    leader_id: Text = UNSET
    local_id: Text = UNSET
    remote_id: Text = UNSET
    term: Count = -1
    total_size: Int = 0
    type: PushKind = PushKind.APPEND

    @property
    def entries(self) -> list[Entry]:
        """The entries of the push in the order of the log."""
        if self.batch_entry:
            return self.batch_entry
        return [self.entry] if isinstance(self.entry, Entry) else []


class TransferRequest(Struct, rename="camel", kw_only=True):
    """A leader shall hand its leadership to another member."""

    code: Int = DLedgerCode.SUCCESS
    group: Text = UNSET
    leader_id: Text = UNSET
    local_id: Text = UNSET
    remote_id: Text = UNSET
    take_leadership_ledger_index: Long = 0
    term: Count = -1
    transfer_id: Text = UNSET
    transferee_id: Text = UNSET


class AppendRequest(Struct, rename="camel", kw_only=True):
    """A client appends an entry."""

    body: bytes | UnsetType | None = UNSET
    code: Int = DLedgerCode.SUCCESS
    group: Text = UNSET
    local_id: Text = UNSET
    remote_id: Text = UNSET
    term: Count = -1


class GetRequest(Struct, rename="camel", kw_only=True):
    """A client reads the entry at `begin_index`."""

    begin_index: Count | UnsetType | None = UNSET
    code: Int = DLedgerCode.SUCCESS
    group: Text = UNSET
    local_id: Text = UNSET
    max_size: Int = 0
    remote_id: Text = UNSET
    term: Count = -1


class Response(Struct, rename="camel", kw_only=True):
    """An answer without members of its own."""

    code: Int = DLedgerCode.SUCCESS
    group: Text = UNSET
    leader_id: Text = UNSET
    local_id: Text = UNSET
    remote_id: Text = UNSET
    term: Count = -1


class VoteResponse(Struct, rename="camel", kw_only=True):
    """The answer to a candidate; `term` is the voter's."""

    code: Int = DLedgerCode.SUCCESS
    group: Text = UNSET
    leader_id: Text = UNSET
    local_id: Text = UNSET
    remote_id: Text = UNSET
    term: Count = -1
    vote_result: VoteResult = VoteResult.UNKNOWN


class PushResponse(Struct, rename="camel", kw_only=True):
    """The answer to a push; `term` is that of the request, by which the leader files it."""

    begin_index: Count = -1
    code: Int = DLedgerCode.SUCCESS
    count: Int = 0
    end_index: Count = -1
    group: Text = UNSET
    #: First entry of the push; absent for COMMIT.
    index: Count | UnsetType | None = UNSET
    leader_id: Text = UNSET
    local_id: Text = UNSET
    remote_id: Text = UNSET
    term: Count = -1


class MetadataResponse(Struct, rename="camel", kw_only=True):
    """Leader and peers; id → host:port."""

    code: Int = DLedgerCode.SUCCESS
    group: Text = UNSET
    leader_id: Text = UNSET
    local_id: Text = UNSET
    peers: dict[str, str] = {}
    remote_id: Text = UNSET
    term: Count = -1


class GetResponse(Struct, rename="camel", kw_only=True):
    """The entry that a client reads, none outside of the log."""

    code: Int = DLedgerCode.SUCCESS
    entries: list[Entry] = []
    group: Text = UNSET
    leader_id: Text = UNSET
    local_id: Text = UNSET
    remote_id: Text = UNSET
    term: Count = -1


AnyRequest = (
    VoteRequest
    | HeartbeatRequest
    | PushRequest
    | TransferRequest
    | MetadataRequest
    | AppendRequest
    | GetRequest
)
AnyResponse = Response | VoteResponse | PushResponse | MetadataResponse | GetResponse
#: Request code → form of the body.
REQUESTS: dict[int, type[AnyRequest]] = {
    DLedgerRequest.METADATA: MetadataRequest,
    DLedgerRequest.APPEND: AppendRequest,
    DLedgerRequest.GET: GetRequest,
    DLedgerRequest.VOTE: VoteRequest,
    DLedgerRequest.HEART_BEAT: HeartbeatRequest,
    DLedgerRequest.PUSH: PushRequest,
    DLedgerRequest.LEADERSHIP_TRANSFER: TransferRequest,
}
_CODES = {kind: code for code, kind in REQUESTS.items()}

T = TypeVar("T", bound=Struct)


def code_of(request: AnyRequest) -> int:
    """Return the request code of a body."""
    return _CODES[type(request)]


def encode(body: AnyRequest | AnyResponse) -> bytes:
    """Return the JSON of a body."""
    return msgspec.json.encode(body)


def decode(kind: type[T], data: bytes) -> T:
    """Decode a body; raises ProtocolError for any other bytes."""
    try:
        body: T = _decoder(kind).decode(data)
    except DECODE_FAULTS as fault:
        raise ProtocolError(f"a body is no {kind.__name__} of DLedger: {fault}") from None
    return body


def push_request(kind: PushKind, entries: list[Entry], commit_index: int) -> PushRequest:
    """Return a push with the derived members that Java senders write."""
    push = PushRequest(type=kind, commit_index=commit_index)
    if len(entries) == 1:
        push.entry = entries[0]
    elif entries:
        push.batch_entry = entries
        push.total_size = sum(entry.size for entry in entries)
    push.batch = len(entries) > 1
    if entries:
        push.count = len(entries)
        push.first_entry_index, push.last_entry_index = entries[0].index, entries[-1].index
    return push


@cache
def _decoder(kind: type[Any]) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind)
