"""kill -9 of the elected master under load, repeatedly: another replica goes on.

No acknowledged message is lost, none is stored twice, each queue keeps its order, and the logs of
all replicas become equal. `FAILOVERS` sets how many kills, `FIRST_SEED` where the random moments
begin; with a file in `FAILOVER_TIMES` the times from kill to first accepted send are written there.
"""

import os
from pathlib import Path

import pytest

from tests.support.failovers import FORGED_EPOCH, Drill, log_of, verify
from tests.support.replica_set import ReplicaSet

pytestmark = pytest.mark.crash

FAILOVERS = int(os.environ.get("FAILOVERS", "3"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
TIMES_FILE = os.environ.get("FAILOVER_TIMES", "")


@pytest.mark.timeout(600 + 60 * FAILOVERS)
async def test_a_killed_master_takes_nothing_with_it(tmp_path: Path) -> None:
    with ReplicaSet(tmp_path, min_in_sync_replicas=2) as replicas:
        drill = Drill(replicas, FIRST_SEED)
        master = await drill.start()
        await drill.forge()
        for _ in range(FAILOVERS):
            await drill.kill(master)
            master = await drill.whole()
        await drill.check()
        epochs = [each.varz()["replica_set"]["epochs"] for each in replicas.replicas]
        assert epochs == [epochs[0]] * len(epochs)
        assert epochs[0][-1]["epoch"] < FORGED_EPOCH, "a forged notice was believed"
        await drill.stop()
        first, *others = replicas.replicas
        for other in others:
            assert log_of(other) == log_of(first)
        for replica in replicas.replicas:
            verify(replica)
    assert drill.history.acknowledged > 50 * FAILOVERS
    if TIMES_FILE:
        Path(TIMES_FILE).write_text("".join(f"{each:.3f}\n" for each in drill.times_s))
