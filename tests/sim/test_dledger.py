"""Simulated DLedger groups: crashes, partitions, late, repeated and lost messages.

Each seed must keep the promises of tests/support/dledger_group.py. DLEDGER_SEEDS sets the number.
"""

import os

import pytest

from tests.support.dledger_group import SimulatedGroup

SEEDS = int(os.environ.get("DLEDGER_SEEDS", "40"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_committed_entry_is_lost(seed: int) -> None:
    group = SimulatedGroup((3, 3, 5, 1)[seed % 4], seed)
    random = group.random
    for _ in range(12):
        group.loss = random.choice((0.0, 0.0, 0.1, 0.4))
        group.crash_share = random.choice((0.0, 0.001, 0.01))
        group.cut = {
            (one, other)
            for one in group.names
            for other in group.names
            if random.random() < random.choice((0.0, 0.0, 0.3))
        }
        if random.random() < 0.3:
            alone = random.choice(group.names)
            group.cut |= {(alone, other) for other in group.names}
            group.cut |= {(other, alone) for other in group.names}
        group.run(random.randrange(1_000, 15_000), 40, group.write)
    group.loss, group.crash_share, group.cut = 0.0, 0.0, set()
    group.run(40_000)
    group.write(least=1)
    group.run(12_000)
    group.check_converged()
    assert group.committed or len(group.names) == 1
