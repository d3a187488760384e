"""What became of proposals and reads: ends their waits, counts outcomes, tells listeners."""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from core_broker.raft.machine import NotLeader, ProposalsFull, ProposalUncertain
from core_broker.raft.model import Entry
from core_broker.raft.ready import Status
from core_broker.raft.state import Role
from core_broker.raft_member.settings import MemberSettings
from core_broker.raft_member.waiting import WaitingProposals, WaitingReads

#: Latencies of applied proposals that are kept for quantiles.
LATENCIES_MAX = 512

log = logging.getLogger(__name__)
_NAMES: dict[type[Exception], str] = {
    NotLeader: "not_leader",
    ProposalsFull: "full",
    ProposalUncertain: "uncertain",
}


class Outcomes:
    """The waiting requests of one member; implements `Observer`. Event loop only."""

    def __init__(self, settings: MemberSettings, leader_addr: Callable[[], str | None]) -> None:
        self.proposals = WaitingProposals()
        self.reads = WaitingReads()
        self.status_listeners: list[Callable[[Status], None]] = []
        #: Proposals by outcome: applied, not_leader, full, uncertain.
        self.counters: Counter[str] = Counter()
        #: elections_won, leader_changes, snapshots_installed.
        self.events: Counter[str] = Counter()
        self.latencies_ms: deque[float] = deque(maxlen=LATENCIES_MAX)
        self._settings = settings
        self._leader_addr = leader_addr

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the outcome of the block, a proposal."""
        began_s = time.monotonic()
        try:
            yield
        except (NotLeader, ProposalsFull, ProposalUncertain) as error:
            self.counters[_NAMES[type(error)]] += 1
            raise
        self.counters["applied"] += 1
        self.latencies_ms.append((time.monotonic() - began_s) * 1000)

    # -- what was executed --

    def entry_applied(self, entry: Entry, result: Any) -> None:
        """An entry was applied."""
        self.proposals.applied(entry.index, entry.term, result, self._leader_addr())

    def applied_to(self, index: int) -> None:
        """The state machine has all entries up to `index`."""
        self.reads.applied(index)

    def state_restored(self, index: int) -> None:
        """The state machine is that of a leader's snapshot."""
        self.events["snapshots_installed"] += 1
        self.proposals.skipped(index)
        self.reads.applied(index)

    def reads_answered(self, reads: Iterable[tuple[int, int]], refused: Iterable[int]) -> None:
        """Reads were confirmed or refused."""
        for context, index in reads:
            self.reads.confirmed(context, index)
        for context in refused:
            self.reads.refused(context, self._leader_addr())

    def status_changed(self, status: Status) -> None:
        """Role, term or leader changed."""
        node_id = self._settings.node_id
        if status.role is Role.LEADER:
            self.events["elections_won"] += 1
            log.info("member %d leads the group in term %d", node_id, status.term)
        elif status.leader_id is not None:
            self.events["leader_changes"] += 1
            log.info("member %d follows %d in term %d", node_id, status.leader_id, status.term)
        if len(self.proposals) and status.role is not Role.LEADER:
            # The next leader may still commit them, or prove that they are lost.
            patience_s = 2 * self._settings.election_timeout_s
            loop = asyncio.get_running_loop()
            loop.call_later(patience_s, self.proposals.end_terms_before, status.term + 1)
        for listener in self.status_listeners:
            listener(status)
