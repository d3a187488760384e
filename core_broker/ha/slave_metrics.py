"""Metrics of a slave: distance to the master, received bytes, state of the connection."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core_broker.ha.status import SlaveState
from core_broker.monitoring.metrics import Family

if TYPE_CHECKING:
    from core_broker.ha.slave import Slave


def slave_families(slave: "Slave") -> Iterator[Family]:
    """Return the metrics; `rocketmq_ha_state` is 1 for the current state."""
    status = slave.status
    yield Family("rocketmq_ha_lag_bytes", [({}, slave.lag_bytes)])
    yield Family("rocketmq_ha_received_bytes_total", [({}, status.received_bytes)])
    yield Family("rocketmq_ha_connections_total", [({}, status.connections)])
    yield Family("rocketmq_ha_last_packet_timestamp", [({}, status.last_read_ms)])
    yield Family(
        "rocketmq_ha_state",
        [({"state": state.value}, float(state is status.state)) for state in SlaveState],
    )
