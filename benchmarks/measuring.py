"""One load on one broker, with what it cost that broker."""

import os
from typing import Any

from benchmarks.load import MESSAGES_MAX, Scenario, run
from benchmarks.processes import Cluster


def measure(
    cluster: Cluster,
    scenario: Scenario,
    *,
    seconds: float,
    messages_max: int = MESSAGES_MAX,
    rate: int = 0,
) -> dict[str, Any]:
    """Run the load generator once; adds the broker's CPU time per message and share of a core.

    What earlier loads left to be written goes to the disk first.
    """
    os.sync()
    before = cluster.broker.cpu_seconds()
    figures = run(
        scenario, cluster.broker_addr, seconds=seconds, messages_max=messages_max, rate=rate
    )
    cpu = cluster.broker.cpu_seconds() - before
    figures["broker_cpu_us_per_message"] = round(cpu * 1e6 / max(1, figures["messages"]), 2)
    figures["broker_cpu_share"] = round(cpu / figures["seconds"], 2)
    return figures
