"""Contracts between the compiled fast path and the broker.

A *taker* takes requests of one kind, without access to the broker. The taker's *shell* has access,
and answers the taker's calls: mostly one call per iteration of the event loop. Values that cross
the border are tuples and protocols of the module; the kernel implements the protocols with C
structs.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from core_broker.remoting.connection import Connection
from core_broker.state.channels import ClientChannel
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.files import Buffer

# Sends


#: Log position, store time and limits for the sends of an iteration, in this order: commit log
#: offset of the first record; capacity behind the offset, bytes; store time of all records, ms
#: since 1970; maximum time between the arrival of a send and the handling, ms; maximum number of
#: answers waiting for the disk. A plain tuple, since every iteration makes one.
SendWindow = tuple[int, int, int, float, int]


class SendSettings(NamedTuple):
    """Settings for sends."""

    #: The broker's address in the format of records, and in the format of message ids.
    host: bytes
    id_prefix: bytes
    #: The broker's additions to the properties of every message, encoded.
    added_properties: bytes
    #: An answer, cut at the variable fields (templates.py).
    answer_template: tuple[bytes, ...]
    is_indexing: bool
    #: True when answers wait for disk or slaves: SYNC_FLUSH, SYNC_MASTER.
    is_sync: bool
    body_bytes_max: int


class SendQueue(Protocol):
    """A queue of a topic, with the units of the iteration."""

    @property
    def queue(self) -> ConsumeQueue:
        """The store's queue."""

    @property
    def queue_id(self) -> int:
        """The number of the queue."""

    @property
    def messages(self) -> int:
        """Messages since the last `forget_counts`."""

    @property
    def stored_bytes(self) -> int:
        """Bytes of records since the last `forget_counts`."""

    def forget_counts(self) -> None:
        """Count messages and bytes from 0 again."""


class HeldAnswers(Protocol):
    """Answers to a connection, held until the disk has the messages."""

    @property
    def connection(self) -> Connection:
        """Receiver of the answers."""

    @property
    def answers(self) -> bytes:
        """The answers as frames."""

    @property
    def answer_count(self) -> int:
        """Number of the answers."""


class SendTaker(Protocol):
    """Takes sends, and keeps records, units, index entries and held answers until handed over."""

    @property
    def messages(self) -> int:
        """Messages to hand over."""

    @property
    def newest(self) -> int:
        """Commit log offset of the last record to hand over."""

    @property
    def now(self) -> int:
        """Store time of the messages to hand over, ms since 1970."""

    @property
    def held_count(self) -> int:
        """Number of answers waiting for the disk."""

    def configure(self, settings: SendSettings) -> None:
        """Put settings in force. Called first of all, and only while no message is kept."""

    def forget(self) -> None:
        """Ask the shell for every topic and queue again."""

    def queues(self) -> Sequence[SendQueue]:
        """Return all known queues."""

    def ask_again(self) -> None:
        """Call `begin` of the shell before the next send: the slow path may have run."""

    def enter_units(self, appended: set[ConsumeQueue]) -> None:
        """Append the units to their queues, and add the queues to a set."""

    def take_records(self) -> Buffer:
        """Hand over the records."""

    def take_entries(self) -> bytes:
        """Hand over the index entries: hash, offset of the record, store time, 64 bits each."""

    def take_held(self) -> Sequence[HeldAnswers]:
        """Hand over the answers waiting for the disk."""

    def release(self, held: Sequence[HeldAnswers]) -> None:
        """Send held answers: the disk has the messages."""


# Pulls and offset commits


class PullWindow(NamedTuple):
    """Readable range and limits for the pulls of an iteration."""

    #: Range of the commit log in memory, by the rule of the store (accessMessageInMemoryMaxRatio).
    log_from: int
    log_end: int
    #: Maximum time between the arrival of a pull and the handling, ms.
    waited_max_ms: float
    #: VIP port, for producers only: pulls are not supported there.
    vip_port: int


class CommitTarget(NamedTuple):
    """The queue and the consumer group of an offset commit."""

    group: str
    topic: str
    queue_id: int


class PullRequest(Protocol):
    """The fields of a pull to hold; None for an absent field."""

    code: int
    opaque: int
    offset: int
    count_max: int
    sys_flag: int
    commit_offset: int
    suspend_ms: int
    sub_version: int
    bytes_max: int | None
    subscription: str | None
    expression_type: str | None


class PullSource(Protocol):
    """A queue for a group and a subscription, with pulls for the fast path."""

    queue: ConsumeQueue
    target: CommitTarget
    #: The filter by tags code; None accepts every message.
    accept: Callable[[int], bool] | None
    #: Pulls, messages and bytes since the last `forget_counts`.
    pulls: int
    messages: int
    stored_bytes: int

    def forget_counts(self) -> None:
        """Count from 0 again."""


class PullTaker(Protocol):
    """Takes pulls. Counters are since the start."""

    #: Pulls with messages, returned messages, and pulls without a message.
    pulls: int
    messages: int
    missed: int
    #: Answers given to the socket at once, in place of the end of the iteration.
    sent_at_once: int
    #: True when pulls may be taken in the current iteration.
    is_open: bool

    def configure(
        self,
        answer_templates: tuple[tuple[bytes, ...], ...],
        count_max: int,
        bytes_max: int,
        scanned_max: int,
    ) -> None:
        """Put settings in force. Called first of all."""

    def forget(self) -> None:
        """Ask the shell for every source again."""

    def begin(self) -> None:
        """Ask the shell for the window of the iteration."""

    def gather(
        self, source: PullSource, offset: int, count_max: int, bytes_max: int, opaque: int
    ) -> bytes | None:
        """Return the answer to a pull as a frame; None when the slow path must answer."""


# Heartbeats

#: Maximum size of a kept heartbeat, bytes; bounds the memory per connection.
KEPT_HEARTBEAT_BYTES_MAX = 8 * 1024


class KeptHeartbeat(Protocol):
    """A heartbeat without effect, and the state of the tables afterwards."""

    client: ClientChannel
    state: object


class HeartbeatTaker(Protocol):
    """Takes heartbeats equal to the connection's previous heartbeat."""

    #: Heartbeats taken since the start.
    heartbeats: int
