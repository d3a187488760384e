"""The store on a simulated disk: acknowledged messages survive kills, power cuts and faults.

`SEEDS` sets how many schedules run, `FIRST_SEED` where they begin; a failure prints the command for
a repetition.
"""

import os

import pytest

from tests.sim.schedule import Schedule

FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
SEEDS = int(os.environ.get("SEEDS", "80"))


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_reliability_03_power_cut(seed: int) -> None:
    """Even seeds run with SYNC_FLUSH, odd seeds with ASYNC_FLUSH."""
    flush = "ASYNC_FLUSH" if seed % 2 else "SYNC_FLUSH"
    try:
        Schedule(seed, flush).run()
    except BaseException as failure:
        failure.add_note(f"{flush}, seed {seed}; repeat it: make sim SEEDS=1 FIRST_SEED={seed}")
        raise
