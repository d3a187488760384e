"""What a consumer holds of one queue: messages pulled and not yet finished. Pure.

Compatible with RocketMQ's ProcessQueue. Messages are finished in any order; the offset that may be
committed is the lowest unfinished one, so a crash repeats messages but never skips one.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue, ProcessQueueInfo

_MIB = 1024 * 1024


class Hold(StrEnum):
    """Why a queue is not pulled at the moment."""

    TOO_MANY_MESSAGES = "too many messages cached"
    TOO_MANY_BYTES = "too many bytes cached"
    SPAN_TOO_WIDE = "one old message holds the offset back"


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """Bounds of what one queue may hold before its pulling pauses."""

    messages_max: int = 1000
    bytes_max: int = 100 * _MIB
    offset_span_max: int = 2000


class ProcessQueue:
    """Owned by one consumer on its event loop; ``dropped`` tells every holder to let go."""

    def __init__(self, queue: MessageQueue, now_ms: int) -> None:
        self.queue = queue
        self.dropped = False
        self.last_pull_ms = now_ms
        self.last_consume_ms = now_ms
        # Pulls come in order of offset, so the first entry is always the lowest unfinished one.
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
        """The lowest unfinished offset; where pulling goes on when all are finished; None when
        nothing was ever pulled."""
        if self._unfinished:
            return next(iter(self._unfinished))
        return self._offset_next if self._offset_next >= 0 else None

    def put(self, messages: Iterable[MessageExt], offset_next: int) -> list[MessageExt]:
        """Take in what one pull brought and where the next one goes on, for what was filtered out
        in between is finished too; gives back the messages that were not known yet."""
        fresh = [message for message in messages if message.queue_offset >= self._offset_next]
        for message in fresh:
            self._unfinished[message.queue_offset] = message
            self._bytes += len(message.body)
        self._offset_next = max(self._offset_next, offset_next)
        return fresh

    def first(self, count: int) -> list[MessageExt]:
        """The unfinished messages with the lowest offsets."""
        return list(islice(self._unfinished.values(), count))

    def finish(self, messages: Sequence[MessageExt], now_ms: int) -> int | None:
        """Forget finished messages; the answer is the offset that may be committed now."""
        self.last_consume_ms = now_ms
        for message in messages:
            if self._unfinished.pop(message.queue_offset, None) is not None:
                self._bytes -= len(message.body)
        return self.offset_commit

    def hold(self, limits: CacheLimits) -> Hold | None:
        """Why the next pull has to wait; None when it may go."""
        if len(self._unfinished) > limits.messages_max:
            return Hold.TOO_MANY_MESSAGES
        if self._bytes > limits.bytes_max:
            return Hold.TOO_MANY_BYTES
        if self._span() > limits.offset_span_max:
            return Hold.SPAN_TOO_WIDE
        return None

    def info(self, offset_committed: int, locked_ms: int = 0) -> ProcessQueueInfo:
        """What code 307 tells about this queue; it is locked since ``locked_ms``, 0 for not."""
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
