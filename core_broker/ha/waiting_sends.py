"""Sends of a SYNC_MASTER that wait until slaves have their messages. Pure.

A wait ends with a response code: SUCCESS once enough slaves have acknowledged all bytes before its
end, or FLUSH_SLAVE_TIMEOUT at its deadline. Compatible with RocketMQ's GroupTransferService.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from core_broker.remoting.codes import ResponseCode

#: Called once with the outcome of a wait.
Replicated = Callable[[ResponseCode], None]


class _Wait(NamedTuple):
    end: int
    slaves: int
    deadline_ms: int
    then: Replicated


class WaitingSends:
    """Waits in the order of the log; an unfinished wait delays the later ones up to its deadline.

    Flow control limits the number of waits (sendThreadPoolQueueCapacity).
    """

    def __init__(self) -> None:
        self._waits: deque[_Wait] = deque()

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, end: int, slaves: int, deadline_ms: int, then: Replicated) -> None:
        """Wait until `slaves` slaves have acknowledged all bytes before `end`.

        `end` never decreases from call to call.
        """
        self._waits.append(_Wait(end, slaves, deadline_ms, then))

    def settle(self, acknowledged: Sequence[int]) -> None:
        """End the waits whose bytes are acknowledged; one offset per slave, highest first."""
        waits = self._waits
        while waits:
            end, slaves, _, then = waits[0]
            if len(acknowledged) < slaves or acknowledged[slaves - 1] < end:
                return
            waits.popleft()
            then(ResponseCode.SUCCESS)

    def expire(self, now_ms: int) -> None:
        """End the waits whose deadline is over."""
        waits = self._waits
        while waits and waits[0].deadline_ms <= now_ms:
            waits.popleft().then(ResponseCode.FLUSH_SLAVE_TIMEOUT)

    def abandon(self, code: ResponseCode) -> None:
        """End all waits with a code."""
        while self._waits:
            self._waits.popleft().then(code)
