"""A snapshot becomes samples: unknown values, failed brokers and nonsense are gaps."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from console.gateway.brokers.listing import BrokerRow, broker_row
from console.gateway.engine.session import BrokerRef
from console.gateway.groups.metrics import GroupMetrics
from console.gateway.snapshot import Snapshot
from console.gateway.topics.metrics import TopicMetrics
from console.services.history.metrics import BY_NAME, Scope
from console.services.history.samples import paces_of, samples_of
from core_broker.processors.runtime_info import RuntimeInfoProcessor
from core_broker.store.put_times import WINDOW_MS
from tests.support.broker_harness import BrokerHarness

AT_MS = 1_762_300_800_000
MASTER, SLAVE = BrokerRef("a", 0, "h:1"), BrokerRef("a", 1, "h:2")
TABLE = {"putTps": "5 4 3", "getTransferedTps": "2 2 2", "commitLogDiskRatio": "0.25"}
GROUP = GroupMetrics(
    lag=3,
    retry_lag=0,
    pending_since_ms=AT_MS - 8_000,
    rate=1.5,
    topics=("orders",),
    clients=2,
    dead_letters=1,
)


def taken(**changes: object) -> Snapshot:
    found = Snapshot(
        brokers=(broker_row(MASTER, "c", TABLE), broker_row(SLAVE, "c", TABLE)),
        connections={MASTER: 7},
        topics={"orders": TopicMetrics(stored=9, total=9, last_write_ms=None, in_rate=4.0)},
        groups={"billing": GROUP},
        taken_ms=AT_MS,
        dead_letters=1,
        every=1,
        has_all_groups=True,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def of(found: Snapshot, scope: Scope, metric: str) -> dict[str, float | None]:
    return samples_of(found)[BY_NAME[scope, metric].number]


def test_values_by_name() -> None:
    found = taken()
    assert of(found, "topic", "produce_rate") == {"orders": 4.0}
    assert of(found, "group", "lag") == {"billing": 3}
    assert of(found, "group", "lag_s") == {"billing": 8.0}
    assert of(found, "broker", "produce_rate") == {"a": 5.0, "a#1": 5.0}
    assert of(found, "broker", "connections") == {"a": 7}, "unknown of the slave"
    assert of(found, "cluster", "produce_rate") == {"": 5.0}, "a slave has copies"
    assert of(found, "cluster", "lag") == {"": 3}
    assert of(found, "cluster", "dead_letters") == {"": 1}


def test_unknown_values_are_gaps() -> None:
    unknown = replace(GROUP, lag=None, pending_since_ms=None, rate=None, dead_letters=None)
    found = taken(groups={"billing": unknown})
    for metric in ("lag", "lag_s", "consume_rate", "dead_letters"):
        assert of(found, "group", metric) == {}
    assert of(found, "topic", "consume_rate") == {}
    assert of(found, "cluster", "lag") == {}
    assert of(found, "broker", "send_p99_ms") == {}


def test_a_broker_that_is_down_has_gaps_and_not_its_last_values() -> None:
    down: BrokerRow = broker_row(MASTER, "c", TABLE, state="down")
    found = taken(brokers=(down,))
    assert of(found, "broker", "produce_rate") == {}
    assert of(found, "cluster", "disk_ratio") == {}


def test_a_sum_over_a_part_of_the_groups_is_a_gap() -> None:
    assert of(taken(has_all_groups=False), "cluster", "lag") == {}


def test_a_latency_is_a_gap_where_the_broker_sends_a_constant() -> None:
    measured = broker_row(MASTER, "c", {"putLatency99": "12"})
    constant = broker_row(MASTER, "c", {"putLatency99": "0", "gantryUnmeasured": "putLatency99"})
    assert of(taken(brokers=(measured,)), "broker", "send_p99_ms") == {"a": 12.0}
    assert of(taken(brokers=(constant,)), "broker", "send_p99_ms") == {}


async def test_a_gantry_broker_measures_the_latency_of_sends(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path)

    def latencies() -> dict[str, float | None]:
        table = RuntimeInfoProcessor(broker.ctx).table()
        return of(taken(brokers=(broker_row(MASTER, "c", table),)), "broker", "send_p99_ms")

    broker.ctx.store.tick(0)
    await broker.send(broker.topic())
    assert latencies() == {}, "RocketMQ reports 0.00 without messages in the last minute"
    broker.ctx.store.tick(WINDOW_MS)
    assert (latencies()["a"] or 0) > 0
    broker.close()


@pytest.mark.parametrize("value", [math.inf, math.nan, -1.0, 1e300])
def test_impossible_values_are_gaps(value: float) -> None:
    topic = TopicMetrics(stored=0, total=0, last_write_ms=None, in_rate=value)
    assert of(taken(topics={"orders": topic}), "topic", "produce_rate") == {}


def test_names_measured_in_turn_have_a_longer_interval() -> None:
    assert paces_of(taken(every=5)) == {"topic": 50_000, "group": 50_000}
