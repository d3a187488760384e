"""Concurrent pulls of one offset range, delivered in offset order.

The range is split into spans. Each pull task takes the next span and pulls until the span is
complete, so a broker may return fewer messages than requested. Results of the first unfinished span
go to the sink at once; results of later spans are buffered. A task whose span is not the first
pauses while the buffer is full. Memory holds at most READAHEAD_BYTES_MAX, one result per task, and
the data of the sink. The caller provides the pull function.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

#: Number of concurrent pulls.
CONCURRENT_PULLS: Final = 8
#: Buffered bytes of later spans at which no task but that of the first span pulls more.
READAHEAD_BYTES_MAX: Final = 8 * 1024 * 1024
#: First span, offsets: the batch size of a broker with default settings.
SPAN_OFFSETS_FIRST: Final = 32
SPAN_OFFSETS_MAX: Final = 1024
#: Consecutive complete results after which the span size doubles.
COMPLETE_RESULTS: Final = 64


class PulledRange(NamedTuple):
    """The result of one pull: all messages from offset `start` up to and without `next_offset`."""

    #: Stored records; records before `start` or behind the requested end may be among them.
    body: bytes
    start: int
    next_offset: int


#: Pulls the messages between two offsets; the result starts at the first and must advance.
Pull = Callable[[int, int], Awaitable[PulledRange]]


class PullSink(Protocol):
    """Receives the pulled records in offset order."""

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Add the records in `buffer` with offsets from `start` up to and without `end`."""


class _Span:
    """The offsets that one pull task has to read."""

    __slots__ = ("end", "next_offset", "results")

    def __init__(self, start: int, end: int) -> None:
        #: First offset without a result.
        self.next_offset = start
        self.end = end
        #: Results not yet delivered.
        self.results: deque[PulledRange] = deque()


class PullWindow:
    """Reads from `start` up to and without `end`. Belongs to one event loop."""

    def __init__(self, pull: Pull, start: int, end: int, *, ahead_offsets: int) -> None:
        self._pull = pull
        self._next = start
        self._end = end
        self._ahead_offsets_max = ahead_offsets
        #: Started spans, in offset order.
        self._spans: deque[_Span] = deque()
        self._span_offsets = SPAN_OFFSETS_FIRST
        self._complete_results = 0
        self._ahead_bytes = 0
        self._ahead_offsets = 0
        #: Wakes the paused pull tasks.
        self._capacity_changed = asyncio.Event()
        #: Wakes `fill`.
        self._progressed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._error: BaseException | None = None
        self._sink: PullSink | None = None
        self._bytes_left = 0
        self._offsets_left = 0

    @property
    def is_finished(self) -> bool:
        """Whether the sinks received the whole range."""
        return self._next >= self._end and not self._spans

    async def fill(self, sink: PullSink, *, offsets_max: int, bytes_max: int) -> int:
        """Deliver results in offset order until a result reaches a limit or the range ends.

        Returns the number of delivered bytes. Raises the errors of the pull function and of the
        sink. The pull tasks run only while a caller awaits `fill`.
        """
        if not self._tasks:
            self._start()
        self._sink, self._offsets_left, self._bytes_left = sink, offsets_max, bytes_max
        self._deliver()
        while self._sink is not None and not self.is_finished:
            self._progressed.clear()
            await self._progressed.wait()
            if self._error is not None:
                raise self._error
        self._sink = None
        return bytes_max - self._bytes_left

    async def close(self) -> None:
        """Cancel the pending pulls."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._pull_spans()) for _ in range(CONCURRENT_PULLS)]
        for task in self._tasks:
            task.add_done_callback(self._task_ended)

    def _task_ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error
            self._progressed.set()

    async def _pull_spans(self) -> None:
        while self._next < self._end:
            span = _Span(self._next, min(self._next + self._span_offsets, self._end))
            self._next = span.end
            self._spans.append(span)
            is_whole_span = True  # the first pull requests the whole span
            while span.next_offset < span.end:
                while self._must_pause(span):
                    self._capacity_changed.clear()
                    await self._capacity_changed.wait()
                result = await self._pull(span.next_offset, span.end)
                span.next_offset = result.next_offset
                span.results.append(result)
                self._ahead_bytes += len(result.body)
                self._ahead_offsets += result.next_offset - result.start
                if is_whole_span:
                    self._adapt_span(result.next_offset - result.start, span.end - result.start)
                    is_whole_span = False
                if self._spans[0] is span:
                    self._deliver()

    def _must_pause(self, span: _Span) -> bool:
        is_full = self._ahead_bytes >= READAHEAD_BYTES_MAX
        is_full = is_full or self._ahead_offsets >= self._ahead_offsets_max
        return is_full and not (self._sink is not None and self._spans[0] is span)

    def _adapt_span(self, returned: int, requested: int) -> None:
        """Set the span size to the size of one result; try a larger span from time to time."""
        if returned < requested:
            self._span_offsets, self._complete_results = returned, 0
        else:
            self._complete_results += 1
            if self._complete_results >= COMPLETE_RESULTS:
                self._span_offsets = min(self._span_offsets * 2, SPAN_OFFSETS_MAX)
                self._complete_results = 0

    def _deliver(self) -> None:
        """Deliver the results at the start of the window until the sink reaches a limit."""
        spans = self._spans
        while spans and self._sink is not None:
            span = spans[0]
            while span.results and self._sink is not None:
                self._deliver_result(self._sink, span.results.popleft(), span.end)
            if span.results or span.next_offset < span.end:
                break
            spans.popleft()
        self._capacity_changed.set()
        if self._sink is None or self.is_finished:
            self._progressed.set()

    def _deliver_result(self, sink: PullSink, result: PulledRange, end: int) -> None:
        size, count = len(result.body), result.next_offset - result.start
        if size:
            sink.add(result.body, result.start, end)
        self._ahead_bytes -= size
        self._ahead_offsets -= count
        self._bytes_left -= size
        self._offsets_left -= count
        if self._bytes_left <= 0 or self._offsets_left <= 0:
            self._sink = None
