"""Linearizable reads without a log entry: ReadIndex (Raft thesis, section 6.4).

A read gets the leader's commit index, and may run on a state machine that has applied this index
once a quorum has answered a heartbeat round that began after the read arrived. All reads between
two rounds share the next round.
"""

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class PendingRead:
    """A read that waits; `source` is the node that gets the answer."""

    source: int
    context: int
    index: int = 0
    round: int = 0


class ReadQueue:
    """The waiting reads of a leader."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._new: list[PendingRead] = []
        self._in_round: deque[PendingRead] = deque()

    @property
    def is_full(self) -> bool:
        """Whether another read exceeds the limit."""
        return len(self._new) + len(self._in_round) >= self._size_max

    @property
    def has_new(self) -> bool:
        """Whether reads wait for a round."""
        return bool(self._new)

    def add(self, source: int, context: int) -> None:
        """Queue a read for the next round."""
        self._new.append(PendingRead(source, context))

    def begin_round(self, number: int, commit: int) -> None:
        """Give all new reads to the round that begins now."""
        for read in self._new:
            read.index = commit
            read.round = number
        self._in_round += self._new
        self._new.clear()

    def confirmed(self, number: int) -> list[PendingRead]:
        """Remove and return the reads of the rounds up to `number`."""
        reads = []
        while self._in_round and self._in_round[0].round <= number:
            reads.append(self._in_round.popleft())
        return reads

    def drain(self) -> list[PendingRead]:
        """Remove and return all reads."""
        reads = [*self._in_round, *self._new]
        self._in_round.clear()
        self._new.clear()
        return reads
