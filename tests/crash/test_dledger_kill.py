"""kill -9 and SIGSTOP of the leader of a DLedger group under load: another member goes on.

No acknowledged message is lost, each queue keeps its order, and the data files of all members
become equal. `FAILOVERS` sets how many kills, `FIRST_SEED` where the random moments begin.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.failovers import Drill, log_of, verify
from tests.support.replica_set import ReplicaSet

pytestmark = pytest.mark.crash

FAILOVERS = int(os.environ.get("FAILOVERS", "2"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))


def _leads_all(found: dict[str, Any], size: int) -> bool:
    """Whether a broker is the master of a group whose members have all entries."""
    ends = [found["end_index"], found["commit_index"], *found["followers"].values()]
    is_master = found["role"] == "leader" and found["broker_role"] == "SYNC_MASTER"
    return is_master and found["is_acting"] and ends == [ends[0]] * (size + 1)


@pytest.mark.timeout(600 + 60 * FAILOVERS)
async def test_a_killed_leader_takes_nothing_with_it(tmp_path: Path) -> None:
    with ReplicaSet(tmp_path, is_dledger=True) as replicas:
        drill = Drill(replicas, FIRST_SEED, _leads_all)
        leader = await drill.start()
        for _ in range(FAILOVERS):
            await drill.kill(leader)
            leader = await drill.whole()
            await drill.pause(leader)
            leader = await drill.whole()
        await drill.check()
        await drill.stop()
        logs = [
            log_of(replica, f"dledger-n{number}/data")
            for number, replica in enumerate(replicas.replicas)
        ]
        assert logs == [logs[0]] * len(logs)
        for number, replica in enumerate(replicas.replicas):
            verify(replica, "--store-path-commit-log", f"{replica.store}/dledger-n{number}/data")
    assert drill.history.acknowledged > 50 * FAILOVERS
