"""A leader: heartbeats, pushes to followers, and the commit index.

Compatible with DLedgerLeaderElector and DLedgerEntryPusher, with two differences that followers do
not see. An entry counts as committed only when a majority has an entry of the leader's own term at
or behind it; DLedger counts entries of earlier terms, too, which a later leader may replace (Raft,
figure 8). And a leader that hears of a later term steps down, also with a majority behind it.
"""

from core_broker.dledger.codes import DLedgerCode
from core_broker.dledger.messages import HeartbeatRequest, PushResponse, Response
from core_broker.dledger.model import NOTHING, Push
from core_broker.dledger.progress import Progress
from core_broker.dledger.state import NodeState

#: Pause before the next heartbeat to a member that has to raise its term first, ms.
_NOT_READY_MS = 50


class Leadership:
    """One member's leadership of one term."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        now_ms = state.now_ms
        self._next_beat_ms = dict.fromkeys(state.others, now_ms)
        self._heard_ms = dict.fromkeys(state.others, now_ms)
        self.progress = {peer: Progress(state, peer) for peer in state.others}

    @property
    def has_quorum(self) -> bool:
        """Whether a majority has answered heartbeats lately."""
        state = self._state
        heard = sum(
            state.now_ms - heard_ms <= state.timing.silence_ms
            for heard_ms in self._heard_ms.values()
        )
        return heard + 1 >= state.quorum

    def is_live(self, peer: str) -> bool:
        """Whether a member has answered one of the last two heartbeats."""
        return self._state.now_ms - self._heard_ms[peer] <= 2 * self._state.timing.heartbeat_ms

    def tick(self) -> None:
        """Send heartbeats and pushes that are due."""
        state = self._state
        for peer in state.others:
            if state.now_ms >= self._next_beat_ms[peer]:
                self._next_beat_ms[peer] = state.now_ms + state.timing.heartbeat_ms
                state.send(peer, HeartbeatRequest(leader_id=state.id, term=state.term))
        self.pump()

    def pump(self) -> None:
        """Push what followers lack."""
        self._advance()
        for progress in self.progress.values():
            progress.pump()

    def beat_answered(self, peer: str, response: Response | None) -> bool:
        """Take the answer to a heartbeat; False when the leadership must end."""
        state = self._state
        if response is None:
            return True
        if response.code == DLedgerCode.SUCCESS:
            self._heard_ms[peer] = state.now_ms
        elif response.code == DLedgerCode.TERM_NOT_READY:
            self._next_beat_ms[peer] = state.now_ms + _NOT_READY_MS
        elif response.code == DLedgerCode.EXPIRED_TERM:
            return response.term <= state.term
        elif response.code == DLedgerCode.INCONSISTENT_LEADER:
            return False
        return True

    def push_answered(self, push: Push, response: PushResponse | None) -> None:
        """Take the answer to a push of this term."""
        self.progress[push.target].answered(push, response)
        self.pump()

    def _advance(self) -> None:
        state = self._state
        ends = [state.log.end_index, *(each.match for each in self.progress.values())]
        index = sorted(ends, reverse=True)[state.quorum - 1]
        if NOTHING < index > state.commit_index and state.log.term_at(index) == state.term:
            state.commit(index)
