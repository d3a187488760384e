"""Proposals and reads that wait for their outcome.

A proposal is over when its index is applied: with the term of its receipt it took effect, with
another term it never will. Event loop only.
"""

import asyncio
from collections import deque
from typing import Any

from core_broker.raft.machine import NotLeader, ProposalUncertain
from core_broker.raft.ready import Receipt

#: Proposals that wait at once.
PROPOSALS_MAX = 4_096
#: Barriers that wait at once.
BARRIERS_MAX = 4_096


class WaitingProposals:
    """The proposals of one member, by index."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[tuple[int, asyncio.Future[Any]]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, receipt: Receipt) -> asyncio.Future[Any]:
        """Return a future of the outcome; the caller keeps the number below `PROPOSALS_MAX`."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(receipt.index, []).append((receipt.term, future))
        self._count += 1
        return future

    def forget(self, receipt: Receipt, future: asyncio.Future[Any]) -> None:
        """Stop waiting, when the caller has given up or has the outcome."""
        rest = self._waiting.get(receipt.index)
        if rest is not None and (receipt.term, future) in rest:
            rest.remove((receipt.term, future))
            self._count -= 1
            if not rest:
                del self._waiting[receipt.index]

    def applied(self, index: int, term: int, result: Any, leader_addr: str | None) -> None:
        """The entry of `index` was applied with `result`."""
        for proposed_term, future in self._pop(index):
            if future.done():
                continue
            if proposed_term == term:
                future.set_result(result)
            else:
                future.set_exception(NotLeader(leader_addr))

    def skipped(self, index: int) -> None:
        """A snapshot of another member replaced the entries up to `index`."""
        for each in [each for each in self._waiting if each <= index]:
            self._fail(self._pop(each), "A snapshot replaced the command's place in the log.")

    def end_terms_before(self, term: int) -> None:
        """The proposals of earlier leaderships have had their time."""
        for index in list(self._waiting):
            waiting = self._pop(index)
            later = [each for each in waiting if each[0] >= term]
            if later:
                self._waiting[index] = later
                self._count += len(later)
            earlier = [each for each in waiting if each[0] < term]
            self._fail(earlier, "The leadership was lost before the command's commit.")

    def end_all(self, sentence: str) -> None:
        """The member stops."""
        for index in list(self._waiting):
            self._fail(self._pop(index), sentence)

    def _pop(self, index: int) -> list[tuple[int, asyncio.Future[Any]]]:
        waiting = self._waiting.pop(index, [])
        self._count -= len(waiting)
        return waiting

    def _fail(self, waiting: list[tuple[int, asyncio.Future[Any]]], sentence: str) -> None:
        for _, future in waiting:
            if not future.done():
                future.set_exception(ProposalUncertain(sentence))


class WaitingReads:
    """The barriers of one member: first for their index, then until it is applied."""

    def __init__(self) -> None:
        self._unconfirmed: dict[int, asyncio.Future[int]] = {}
        self._unapplied: deque[tuple[int, asyncio.Future[None]]] = deque()

    def __len__(self) -> int:
        return len(self._unconfirmed) + len(self._unapplied)

    def add(self, context: int) -> asyncio.Future[int]:
        """Return a future of the index that must be applied."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._unconfirmed[context] = future
        return future

    def forget(self, context: int) -> None:
        """Stop waiting for the confirmation."""
        self._unconfirmed.pop(context, None)

    def confirmed(self, context: int, index: int) -> None:
        """The leader has answered; an answer to a forgotten read changes nothing."""
        future = self._unconfirmed.pop(context, None)
        if future is not None and not future.done():
            future.set_result(index)

    def refused(self, context: int, leader_addr: str | None) -> None:
        """The read lost its leader."""
        future = self._unconfirmed.pop(context, None)
        if future is not None and not future.done():
            future.set_exception(NotLeader(leader_addr))

    def until_applied(self, index: int) -> asyncio.Future[None]:
        """Return a future of the moment at which `index` is applied."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unapplied.append((index, future))
        return future

    def applied(self, index: int) -> None:
        """The state machine has all entries up to `index`."""
        for _ in range(len(self._unapplied)):
            wanted, future = self._unapplied.popleft()
            if future.done():
                continue
            if wanted <= index:
                future.set_result(None)
            else:
                self._unapplied.append((wanted, future))

    def end_all(self) -> None:
        """The member stops."""
        futures: list[asyncio.Future[int] | asyncio.Future[None]] = [
            *self._unconfirmed.values(),
            *(future for _, future in self._unapplied),
        ]
        self._unconfirmed.clear()
        self._unapplied.clear()
        for future in futures:
            if not future.done():
                future.set_exception(NotLeader())
