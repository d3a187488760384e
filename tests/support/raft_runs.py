"""One run of a simulated Raft cluster: faults, then healing, then the verdict.

Safety is checked on every event, the clients' history at the end. After the last fault the cluster
must accept a command and apply the command on all voters: liveness holds when the faults end.
"""

from core_broker.raft.model import Membership
from core_broker.raft.refusals import RaftRefused
from tests.support.linearizability import Operation, check_history
from tests.support.raft_clients import Clients
from tests.support.raft_cluster import Cluster
from tests.support.raft_faults import Faults

FAULTS_MS = 2_000
HEALED_MS = 60_000
#: Pause between two attempts of the last command.
ATTEMPT_MS = 200


class Run:
    """One run, determined by the seed."""

    def __init__(self, seed: int) -> None:
        self.cluster = Cluster(seed)
        self._clients = Clients(self.cluster)
        self._faults = Faults(self.cluster)
        self._attempts: list[int] = []

    def run(self) -> None:
        """Run; raises AssertionError, RaftBroken or StoreCorrupt for a defect."""
        cluster = self.cluster
        first = Membership(tuple(range(1, cluster.voters + 1)))
        for node_id in first.voters:
            cluster.start(cluster.hosts[node_id], first)
        self._faults.begin()
        self._clients.begin()
        cluster.run_until(FAULTS_MS)
        self._clients.end()
        self._faults.end()
        self._heal()
        problem = check_history(self._clients.history())
        assert problem is None, problem

    def _heal(self) -> None:
        cluster = self.cluster
        for host in cluster.hosts.values():
            if cluster.lives[host.id]:
                cluster.restart(host)
        end_ms = cluster.now_ms + HEALED_MS
        self._attempt()
        assert cluster.run_until(end_ms, self._is_accepted), "no progress after the last fault"
        last = max(cluster.invariants.applied)

        def is_complete() -> bool:
            leader = cluster.leader()
            if leader is None or leader.node is None:
                return False
            voters = [cluster.hosts[each] for each in leader.node.membership.voters]
            return all(each.machine.applied >= last for each in voters)

        assert cluster.run_until(end_ms, is_complete), "a voter lacks committed entries"

    def _attempt(self) -> None:
        leader = self.cluster.leader()
        if leader is not None:
            try:
                operation = Operation("last", "write", 0, "done")
                self._attempts.append(self._clients.propose(leader, operation))
            except RaftRefused:
                pass
        self.cluster.after(ATTEMPT_MS, self._attempt)

    def _is_accepted(self) -> bool:
        return any(map(self._clients.is_answered, self._attempts))
