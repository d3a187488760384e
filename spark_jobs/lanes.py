"""A range of offsets read by several questions at once, and put in order again.

The range is cut into spans. Each lane takes the next span and asks until it has all of it, so that
an answer may be as short as the broker likes. What is first in order goes to the reader as soon as
it is there, the rest waits; a lane that is too far ahead waits too. In memory are at most
AHEAD_BYTES, an answer for each lane, and what the reader was given. Asking is left to whoever makes
the lanes.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

#: So many questions are under way at once.
LANES: Final = 8
#: Nobody asks for more while so much waits for what comes before it.
AHEAD_BYTES: Final = 8 * 1024 * 1024
#: What a broker answers to one question, if it is set up as usual.
SPAN_OFFSETS_FIRST: Final = 32
SPAN_OFFSETS_MAX: Final = 1024
#: After so many answers with all that was asked for, more is asked for.
FULL_ANSWERS: Final = 64


class Answer(NamedTuple):
    """What is there from offset `start` up to and without `next_offset`."""

    #: Stored records; some may lie outside of what was asked for.
    body: bytes
    start: int
    next_offset: int


#: Asks for what is between two offsets; the answer begins at the first and goes on beyond it.
Ask = Callable[[int, int], Awaitable[Answer]]


class Taker(Protocol):
    """Where the answers go."""

    def add(self, buffer: bytes, start: int, end: int) -> None:
        """Take the records in `buffer` with offsets from `start` up to and without `end`."""


class _Span:
    """What one lane has to bring."""

    __slots__ = ("answers", "at", "end")

    def __init__(self, start: int, end: int) -> None:
        self.at = start
        """Everything before it was answered."""
        self.end = end
        self.answers: deque[Answer] = deque()
        """What was not taken yet."""


class Lanes:
    """Reads from `start` up to and without `end`. Belongs to one event loop."""

    def __init__(self, ask: Ask, start: int, end: int, *, ahead_offsets: int) -> None:
        self._ask = ask
        self._next = start
        self._end = end
        self._ahead_offsets_max = ahead_offsets
        self._spans: deque[_Span] = deque()
        """Those that were begun, in order."""
        self._span_offsets = SPAN_OFFSETS_FIRST
        self._full = 0
        self._ahead_bytes = 0
        self._ahead_offsets = 0
        self._room = asyncio.Event()
        """Set when a lane that waits should look again."""
        self._news = asyncio.Event()
        """Set when `fill` should look again."""
        self._tasks: list[asyncio.Task[None]] = []
        self._fault: BaseException | None = None
        self._taker: Taker | None = None
        self._bytes_left = 0
        self._offsets_left = 0

    @property
    def is_over(self) -> bool:
        """Whether everything was taken."""
        return self._next >= self._end and not self._spans

    async def fill(self, taker: Taker, *, offsets_max: int, bytes_max: int) -> int:
        """Give answers in order until one reaches a limit or nothing is left; their bytes.

        Raises what a question raised. The lanes go on only while this is awaited."""
        if not self._tasks:
            self._start()
        self._taker, self._offsets_left, self._bytes_left = taker, offsets_max, bytes_max
        self._hand_over()
        while self._taker is not None and not self.is_over:
            self._news.clear()
            await self._news.wait()
            if self._fault is not None:
                raise self._fault
        self._taker = None
        return bytes_max - self._bytes_left

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._lane()) for _ in range(LANES)]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._fault = self._fault or fault
            self._news.set()

    async def _lane(self) -> None:
        while self._next < self._end:
            span = _Span(self._next, min(self._next + self._span_offsets, self._end))
            self._next = span.end
            self._spans.append(span)
            is_first = True  # the question that asked for the whole span
            while span.at < span.end:
                while self._must_wait(span):
                    self._room.clear()
                    await self._room.wait()
                answer = await self._ask(span.at, span.end)
                span.at = answer.next_offset
                span.answers.append(answer)
                self._ahead_bytes += len(answer.body)
                self._ahead_offsets += answer.next_offset - answer.start
                if is_first:
                    self._learn(answer.next_offset - answer.start, span.end - answer.start)
                    is_first = False
                if self._spans[0] is span:
                    self._hand_over()

    def _must_wait(self, span: _Span) -> bool:
        is_far = self._ahead_bytes >= AHEAD_BYTES or self._ahead_offsets >= self._ahead_offsets_max
        return is_far and not (self._taker is not None and self._spans[0] is span)

    def _learn(self, answered: int, asked: int) -> None:
        """Ask for as much as one answer holds, and for more once in a while."""
        if answered < asked:
            self._span_offsets, self._full = answered, 0
        else:
            self._full += 1
            if self._full >= FULL_ANSWERS:
                self._span_offsets = min(self._span_offsets * 2, SPAN_OFFSETS_MAX)
                self._full = 0

    def _hand_over(self) -> None:
        """Give what is first in order, as far as it is there and wanted."""
        spans = self._spans
        while spans and self._taker is not None:
            span = spans[0]
            while span.answers and self._taker is not None:
                self._take(self._taker, span.answers.popleft(), span.end)
            if span.answers or span.at < span.end:
                break
            spans.popleft()
        self._room.set()
        if self._taker is None or self.is_over:
            self._news.set()

    def _take(self, taker: Taker, answer: Answer, end: int) -> None:
        size, count = len(answer.body), answer.next_offset - answer.start
        if size:
            taker.add(answer.body, answer.start, end)
        self._ahead_bytes -= size
        self._ahead_offsets -= count
        self._bytes_left -= size
        self._offsets_left -= count
        if self._bytes_left <= 0 or self._offsets_left <= 0:
            self._taker = None
