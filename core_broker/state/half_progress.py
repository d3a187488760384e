"""The progress of transaction checks, and the decision about each pending half message. Pure.

    half topic   0 1 2 3 4 5 …     half messages in one queue
    op topic     "1" "0" "4" …     one op message per ended half message: its queue offset

A half message is settled once an op message names its offset: the transaction was ended, or the
half message was stored again at the end of the queue for a later check. Progress is saved as two
consumer offsets: all half messages before the first offset are settled, and a restart needs no op
message before the second offset. Compatible with RocketMQ's TransactionalMessageServiceImpl.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from core_broker.message.model import MessageExt
from core_broker.message.properties import PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS
from core_broker.message.transactions import times_checked, whole_number

#: Op messages in one run. Runs are dropped as a whole, so a restart rereads at most one run.
OPS_PER_RUN = 256
#: Maximum remembered moves of half messages from an old offset to a new offset.
MOVED_MAX = 100_000


class Verdict(Enum):
    """The decision about a pending half message."""

    #: Too young for a check, like all half messages behind it: the round ends.
    WAIT = "wait"
    #: In its immunity time: store a copy, send no check.
    IMMUNE = "immune"
    #: Store a copy, send a check to a producer.
    CHECK = "check"
    #: Move to TRANS_CHECK_MAX_TIME_TOPIC.
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class CheckRules:
    """The settings transactionTimeOut, transactionCheckMax and fileReservedTime."""

    timeout_ms: int
    check_max: int
    reserved_ms: int


def judge(half: MessageExt, now_ms: int, round_began_ms: int, rules: CheckRules) -> Verdict:
    """Decide about a half message that is not settled."""
    age_ms = now_ms - half.born_timestamp
    if times_checked(half.properties) >= rules.check_max or age_ms > rules.reserved_ms:
        return Verdict.DISCARD
    if half.store_timestamp >= round_began_ms:
        return Verdict.WAIT
    immunity = whole_number(half.properties.get(PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS))
    if immunity is not None:
        return Verdict.IMMUNE if age_ms < immunity * 1000 else Verdict.CHECK
    # A negative age means that a clock is wrong; waiting would not help.
    return Verdict.WAIT if 0 <= age_ms < rules.timeout_ms else Verdict.CHECK


class HalfProgress:
    """Queue offsets of settled half messages and of read op messages.

    Memory: one number for each settled half message behind the first unsettled half message.
    """

    def __init__(self, next_half: int, next_op: int) -> None:
        #: Offset of the first half message that may be unsettled.
        self.next_half = next_half
        #: Offset of the next op message to read.
        self.next_op = next_op
        self._settled: set[int] = set()
        #: [first op message, last half message] of each run of op messages, in order.
        self._runs: deque[list[int]] = deque()
        self._ops_in_run = 0
        #: Old offset -> new offset of half messages stored again.
        self._moved: dict[int, int] = {}

    @property
    def needed_op(self) -> int:
        """The first op message that a restart must read again."""
        return self._runs[0][0] if self._runs else self.next_op

    def begin_at(self, first_half: int, first_op: int) -> None:
        """Skip expired half and op messages."""
        self.next_op = max(self.next_op, first_op)
        if first_half > self.next_half:
            self.pass_to(first_half)

    def read_op(self, halves: Iterable[int], end: int, moved_to: int | None = None) -> None:
        """Apply the next op message; `end` is the end offset of the half queue."""
        if moved_to is not None:
            self._move(halves, moved_to, end)
            self.next_op += 1
            return
        last = -1
        for half in halves:
            offset = self._current_offset(half)
            if self.next_half <= offset < end:
                self._settled.add(offset)
                last = max(last, offset)
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
        """True when an op message names the offset, or an earlier offset of the half message."""
        return half < self.next_half or half in self._settled

    def _move(self, halves: Iterable[int], target: int, end: int) -> None:
        """Map old offsets to `target`, so that an op message for an old offset settles the copy."""
        for half in halves:
            if not half < target < end:
                continue
            if half >= self.next_half:
                self._settled.add(half)
            self._moved[half] = target
            self._note(target)
            if len(self._moved) > MOVED_MAX:
                del self._moved[next(iter(self._moved))]

    def pass_to(self, half: int) -> None:
        """Advance to `half`; all half messages before it count as settled."""
        if half - self.next_half > len(self._settled):
            self._settled = {offset for offset in self._settled if offset >= half}
        else:
            self._settled.difference_update(range(self.next_half, half))
        self.next_half = half
        while self._runs and self._runs[0][1] < half:
            self._runs.popleft()

    def _current_offset(self, half: int) -> int:
        """The offset of the latest copy of a half message."""
        while (target := self._moved.get(half)) is not None:
            half = target
        return half
