"""Which half messages still wait for their producers, and what is to be done about each. Pure.

    half topic   0 1 2 3 4 5 …     messages whose transactions were begun, in one queue
    op topic     "1" "0" "4" …     one message for each that was ended: its offset in the half topic

A half message leaves the ledger when it is settled: an op message names it, because it was ended,
or because it was stored again at the end of its queue, to be asked about again later. Progress is
kept as two consumer offsets: all half messages before the first are settled, and no op message
before the second is needed any more. Compatible with RocketMQ's TransactionalMessageServiceImpl.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from core_broker.message.model import MessageExt
from core_broker.message.properties import (
    PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS,
    PROPERTY_TRANSACTION_CHECK_TIMES,
)

#: Op messages that are given up together; a restart reads at most so many too much.
OPS_PER_RUN = 256
#: Half messages stored again whose old places are remembered.
MOVED_MAX = 100_000
_DIGITS_MAX = 18


class Verdict(Enum):
    """What to do about a half message that nobody has ended."""

    #: Nothing yet, nor about those behind it.
    WAIT = "wait"
    #: Store it again and ask nobody: its sender wants to be left alone for a while.
    SHIELD = "shield"
    #: Store it again and ask a producer.
    CHECK = "check"
    #: Give it up.
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class CheckRules:
    """The settings transactionTimeOut, transactionCheckMax and fileReservedTime."""

    timeout_ms: int
    check_max: int
    reserved_ms: int


def judge(half: MessageExt, now_ms: int, round_began_ms: int, rules: CheckRules) -> Verdict:
    """Decide about a half message that no op message names."""
    age_ms = now_ms - half.born_timestamp
    if times_checked(half.properties) >= rules.check_max or age_ms > rules.reserved_ms:
        return Verdict.DISCARD
    if half.store_timestamp >= round_began_ms:
        return Verdict.WAIT
    immunity = _number(half.properties.get(PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS))
    if immunity is not None:
        return Verdict.SHIELD if age_ms < immunity * 1000 else Verdict.CHECK
    # A message from the future comes from a clock that is wrong; waiting would not help.
    return Verdict.WAIT if 0 <= age_ms < rules.timeout_ms else Verdict.CHECK


def times_checked(properties: Mapping[str, str]) -> int:
    """How often a producer was asked about a half message."""
    return _number(properties.get(PROPERTY_TRANSACTION_CHECK_TIMES)) or 0


def _number(text: str | None) -> int | None:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        return None
    return int(text)


class HalfLedger:
    """How far the half messages are settled.

    It remembers one number for each settled half message that has an unsettled one before it.
    """

    def __init__(self, next_half: int, next_op: int) -> None:
        #: All half messages before this one are settled.
        self.next_half = next_half
        #: The next op message to read.
        self.next_op = next_op
        self._settled: set[int] = set()
        #: First op message and last half message of runs of op messages, in order.
        self._runs: deque[list[int]] = deque()
        self._ops_in_run = 0
        #: Where half messages were stored again, by their old offset.
        self._moved: dict[int, int] = {}

    @property
    def needed_op(self) -> int:
        """The first op message that a restart must read again."""
        return self._runs[0][0] if self._runs else self.next_op

    def begin_at(self, first_half: int, first_op: int) -> None:
        """Skip what has expired from the queues."""
        self.next_op = max(self.next_op, first_op)
        if first_half > self.next_half:
            self.pass_to(first_half)

    def read_op(self, halves: Iterable[int], end: int, moved_to: int | None = None) -> None:
        """Take note of the next op message; `end` is the end of the half queue."""
        if moved_to is not None:
            self._move(halves, moved_to, end)
            self.next_op += 1
            return
        last = -1
        for half in halves:
            place = self._place(half)
            if self.next_half <= place < end:
                self._settled.add(place)
                last = max(last, place)
        if last >= 0:
            self._note(last)
        self.next_op += 1

    def _note(self, half: int) -> None:
        if not self._runs or self._ops_in_run >= OPS_PER_RUN:
            self._runs.append([self.next_op, half])
            self._ops_in_run = 0
        self._ops_in_run += 1
        self._runs[-1][1] = max(self._runs[-1][1], half)

    def is_settled(self, half: int) -> bool:
        """True when an op message names this half message, or an earlier place of it."""
        return half < self.next_half or half in self._settled

    def _move(self, halves: Iterable[int], place: int, end: int) -> None:
        """Half messages were stored again: what ends them at the old place ends the new one."""
        for half in halves:
            if not half < place < end:
                continue
            if half >= self.next_half:
                self._settled.add(half)
            self._moved[half] = place
            self._note(place)
            if len(self._moved) > MOVED_MAX:
                del self._moved[next(iter(self._moved))]

    def pass_to(self, half: int) -> None:
        """Note that everything before `half` is settled."""
        if half - self.next_half > len(self._settled):
            self._settled = {each for each in self._settled if each >= half}
        else:
            self._settled.difference_update(range(self.next_half, half))
        self.next_half = half
        while self._runs and self._runs[0][1] < half:
            self._runs.popleft()

    def _place(self, half: int) -> int:
        """Where a half message lies now."""
        while (place := self._moved.get(half)) is not None:
            half = place
        return half
