"""Metrics of a master's replication: slaves with lag and rate, closed connections, failed waits."""

from collections.abc import Iterator

from core_broker.ha.master import ReplicationMaster
from core_broker.monitoring.metrics import Family


def master_families(master: ReplicationMaster) -> Iterator[Family]:
    """Return the metrics; the label `slave` is the address of the slave's connection."""
    slaves = master.status().ha_connection_info
    yield Family("rocketmq_ha_slaves", [({}, len(slaves))])
    yield Family(
        "rocketmq_ha_slave_lag_bytes", [({"slave": each.addr}, each.diff) for each in slaves]
    )
    yield Family(
        "rocketmq_ha_slave_transferred_bytes_per_second",
        [({"slave": each.addr}, each.transferred_byte_in_second) for each in slaves],
    )
    yield Family(
        "rocketmq_ha_closed_connections_total",
        [({"reason": reason}, count) for reason, count in master.closings.items()],
    )
    yield Family(
        "rocketmq_ha_unreplicated_sends_total",
        [({"code": code}, count) for code, count in master.unreplicated.items()],
    )
