"""The process queue of a message queue: the pulled and unfinished messages. Pure.

Compatible with RocketMQ's ProcessQueue. Messages finish in any order; the offset to commit is the
lowest unfinished offset, so a crash repeats messages but never skips a message.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue, ProcessQueueInfo

_MIB = 1024 * 1024


class PauseReason(StrEnum):
    """Reasons for a pause of pulling, by RocketMQ's flow control."""

    TOO_MANY_MESSAGES = "too many messages cached"
    TOO_MANY_BYTES = "too many bytes cached"
    SPAN_TOO_WIDE = "an old unfinished message limits the offset span"


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """Limits of the cached messages of one queue; above a limit pulling pauses."""

    messages_max: int = 1000
    bytes_max: int = 100 * _MIB
    offset_span_max: int = 2000


class ProcessQueue:
    """Owned by one consumer, on the consumer's event loop. After ``dropped`` is set, pulling and
    consuming stop and outcomes are ignored."""

    def __init__(self, queue: MessageQueue, now_ms: int) -> None:
        self.queue = queue
        self.dropped = False
        self.last_pull_ms = now_ms
        self.last_consume_ms = now_ms
        # Messages are added in offset order, so the first entry has the lowest unfinished offset.
        self._unfinished: OrderedDict[int, MessageExt] = OrderedDict()
        self._bytes = 0
        self._offset_next = -1

    @property
    def count(self) -> int:
        return len(self._unfinished)

    @property
    def size_bytes(self) -> int:
        return self._bytes

    @property
    def offset_commit(self) -> int | None:
        """The lowest unfinished offset; the next offset to pull when all messages are finished;
        None before the first pull."""
        if self._unfinished:
            return next(iter(self._unfinished))
        return self._offset_next if self._offset_next >= 0 else None

    def put(self, messages: Iterable[MessageExt], offset_next: int) -> list[MessageExt]:
        """Add the messages of one pull, and set the next offset to pull: messages filtered out by
        the broker count as finished. Returns the messages not added before."""
        new_messages = [it for it in messages if it.queue_offset >= self._offset_next]
        for message in new_messages:
            self._unfinished[message.queue_offset] = message
            self._bytes += len(message.body)
        self._offset_next = max(self._offset_next, offset_next)
        return new_messages

    def first(self, count: int) -> list[MessageExt]:
        """The unfinished messages with the lowest offsets."""
        return list(islice(self._unfinished.values(), count))

    def finish(self, messages: Sequence[MessageExt], now_ms: int) -> int | None:
        """Remove finished messages; returns the offset to commit."""
        self.last_consume_ms = now_ms
        for message in messages:
            if self._unfinished.pop(message.queue_offset, None) is not None:
                self._bytes -= len(message.body)
        return self.offset_commit

    def pause_reason(self, limits: CacheLimits) -> PauseReason | None:
        """The reason to pause pulling; None below all limits."""
        if len(self._unfinished) > limits.messages_max:
            return PauseReason.TOO_MANY_MESSAGES
        if self._bytes > limits.bytes_max:
            return PauseReason.TOO_MANY_BYTES
        if self._span() > limits.offset_span_max:
            return PauseReason.SPAN_TOO_WIDE
        return None

    def info(self, offset_committed: int, locked_ms: int = 0) -> ProcessQueueInfo:
        """The queue's part of the running info (307); ``locked_ms`` is the time of the lock in ms
        since 1970, 0 for an unlocked queue."""
        offsets = list(self._unfinished)
        return ProcessQueueInfo(
            commit_offset=offset_committed,
            cached_msg_min_offset=offsets[0] if offsets else 0,
            cached_msg_max_offset=offsets[-1] if offsets else 0,
            cached_msg_count=len(offsets),
            cached_msg_size_in_mib=self._bytes // _MIB,
            locked=locked_ms > 0,
            last_lock_timestamp=locked_ms,
            droped=self.dropped,
            last_pull_timestamp=self.last_pull_ms,
            last_consume_timestamp=self.last_consume_ms,
        )

    def _span(self) -> int:
        if not self._unfinished:
            return 0
        return next(reversed(self._unfinished)) - next(iter(self._unfinished))
