"""The messages between the nodes of a group.

Every message has the ids of its sender and receiver and the sender's term. The messages are the
RPCs of the Raft paper as separate requests and responses: transport may lose, repeat and reorder.
"""

from collections.abc import Sequence

import msgspec

from core_broker.raft.model import Entry, SnapshotMeta


class Message(msgspec.Struct, frozen=True, tag=True):
    """Base class; use the subclasses."""

    source: int
    target: int
    term: int


class VoteRequest(Message, frozen=True, tag=True):
    """A candidate asks for a vote; in a pre-vote `term` is the term of the planned election."""

    last_index: int
    last_term: int
    is_pre_vote: bool
    #: Whether the leader ordered the election: receivers then ignore their live leader.
    is_transfer: bool = False


class VoteResponse(Message, frozen=True, tag=True):
    """A granted pre-vote has the term of the request, all other answers the voter's term."""

    is_granted: bool
    is_pre_vote: bool


class AppendRequest(Message, frozen=True, tag=True):
    """Entries behind `prev_index`, and the leader's commit index."""

    prev_index: int
    prev_term: int
    entries: tuple[Entry, ...]
    commit: int


class AppendResponse(Message, frozen=True, tag=True):
    """The follower's log equals the leader's up to `index`; or `prev_index` was rejected.

    With a rejection, `hint_index` and `hint_term` name the newest entry that may be equal.
    """

    index: int
    is_rejected: bool = False
    hint_index: int = 0
    hint_term: int = 0


class Heartbeat(Message, frozen=True, tag=True):
    """Sign of life; `commit` never exceeds the follower's acknowledged index."""

    commit: int
    #: Number of the leader's broadcast; answers confirm the leadership for reads.
    round: int


class HeartbeatResponse(Message, frozen=True, tag=True):
    """Answer to a heartbeat, with its round."""

    round: int


class SnapshotChunk(Message, frozen=True, tag=True):
    """Bytes of a snapshot from `offset`; the chunk that reaches `snapshot.size` is the last."""

    snapshot: SnapshotMeta
    offset: int
    data: bytes


class SnapshotResponse(Message, frozen=True, tag=True):
    """The follower has persisted the snapshot of `index` up to `next_offset`."""

    index: int
    next_offset: int


class TimeoutNow(Message, frozen=True, tag=True):
    """The leader hands over: the receiver starts an election at once."""


class ReadRequest(Message, frozen=True, tag=True):
    """A follower asks the leader for the index of a linearizable read."""

    context: int


class ReadResponse(Message, frozen=True, tag=True):
    """The read of `context` may run once the entry `index` is applied."""

    context: int
    index: int


#: Messages of a leader to its followers.
LeaderMessage = AppendRequest | Heartbeat | SnapshotChunk
AnyMessage = (
    VoteRequest
    | VoteResponse
    | AppendRequest
    | AppendResponse
    | Heartbeat
    | HeartbeatResponse
    | SnapshotChunk
    | SnapshotResponse
    | TimeoutNow
    | ReadRequest
    | ReadResponse
)

_decoder = msgspec.msgpack.Decoder(list[AnyMessage])


def encode_messages(messages: Sequence[Message]) -> bytes:
    """Return the bytes of messages for one peer, in MessagePack."""
    return msgspec.msgpack.encode(messages)


def decode_messages(data: bytes) -> list[AnyMessage]:
    """Read the bytes of `encode_messages`; raises msgspec.DecodeError."""
    return _decoder.decode(data)
