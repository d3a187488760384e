"""The members of a DLedger group as a test scripts them: when they have a leader's messages."""

from core_broker.processors.durability import Confirmed
from core_broker.remoting.bodies import HARuntimeInfo
from core_broker.remoting.codes import ResponseCode
from tests.support.broker_harness import BrokerHarness

#: Settings of the leader of a group.
LEADER = {
    "enable_d_leger_commit_log": True,
    "d_leger_self_id": "n0",
    "broker_role": "SYNC_MASTER",
}


class ScriptedMajority:
    """Holds the waits for a majority of a leading broker until the test ends them."""

    def __init__(self, broker: BrokerHarness) -> None:
        self.held: list[tuple[int, Confirmed]] = []
        broker.ctx.replicas = self

    def when_replicated(self, end: int, then: Confirmed) -> None:
        """Hold a wait."""
        self.held.append((end, then))

    @property
    def waiting(self) -> int:
        """Number of waits."""
        return len(self.held)

    def status(self) -> HARuntimeInfo:
        """Return nothing in particular."""
        return HARuntimeInfo()

    def answer(self, code: ResponseCode) -> None:
        """End all waits."""
        held, self.held = self.held, []
        for _, then in held:
            then(code)
