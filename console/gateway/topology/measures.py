"""Questions about rates and lags for the topology.

Gantry brokers answer with inventories. Other brokers answer for one topic or group per request: the
first SCAN_MAX topics and groups by name are measured, and `left_out` counts the rest.
"""

import asyncio
from collections.abc import Iterable, Mapping

from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures, now_ms
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.listing import group_rows
from console.gateway.groups.metrics import bulk_group_metrics, metrics_of_groups
from console.gateway.groups.progress import GroupQueue, queue_progress
from console.gateway.inventory import INVENTORY_DEADLINE_MS, group_inventory, topic_inventory
from console.gateway.metrics import METRICS_DEADLINE_MS, SCAN_MAX, ask_each, sum_known
from console.gateway.topics.listing import topic_configs, topic_rows
from console.gateway.topics.metrics import TopicMetrics, bulk_topic_metrics
from console.gateway.topology.building import GroupMeasures, TopicMeasures
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies.inventory import GroupInventoryBody
from core_broker.remoting.codes import ResponseCode

#: Freshness of the rate of one topic or edge, milliseconds.
RATES_FRESH_MS = 4_000
#: Maximum number of edges whose consume rate is requested, one request per edge and broker.
RATED_EDGES_MAX = 200

#: Topic and group of an edge.
Pair = tuple[str, str]


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def topic_measures(session: ClusterSession) -> Partial[TopicMeasures]:
    """Rates and lags of all topics, or of the first SCAN_MAX topics without inventory."""
    rows = await session.ask(topic_rows)
    inventory = await session.ask(topic_inventory)
    metrics = (await session.ask(bulk_topic_metrics)).value
    bulk = metrics.by_name
    put: dict[str, Mapping[str, float | None]] = {
        name: {
            ref.name: body.topics[name].put_tps
            for ref, body in inventory.value.items()
            if name in body.topics
        }
        for name in bulk
    }
    missing = [row.name for row in rows.value if row.name not in bulk and row.kind != "system"]
    asked = await ask_each(session, put_rates, missing[:SCAN_MAX])
    put.update(asked.value)
    return Partial(
        TopicMeasures(
            put,
            {name: metrics.out_rate for name, metrics in bulk.items()},
            _by_group(bulk),
            metrics.taken_ms or now_ms(),
            max(0, len(missing) - SCAN_MAX),
        ),
        merge_failures(rows.failures, inventory.failures, asked.failures),
    )


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def group_measures(session: ClusterSession) -> Partial[GroupMeasures]:
    """Metrics of all groups, or of the first SCAN_MAX groups without inventory."""
    rows = await session.ask(group_rows)
    bulk = await session.ask(bulk_group_metrics)
    inventory = await session.ask(group_inventory)
    metrics = dict(bulk.value.by_name)
    missing = [row.name for row in rows.value if row.name not in metrics and not row.system]
    names = tuple(missing[:SCAN_MAX])
    asked, progress = await asyncio.gather(
        session.ask(metrics_of_groups, names), ask_each(session, queue_progress, names)
    )
    metrics.update(asked.value)
    return Partial(
        GroupMeasures(
            metrics,
            {group: _by_topic(queues) for group, queues in progress.value.items()},
            _rates_of_topics(inventory.value),
            bulk.value.taken_ms or now_ms(),
            max(0, len(missing) - SCAN_MAX),
        ),
        merge_failures(rows.failures, bulk.failures, asked.failures, progress.failures),
    )


# For brokers without rates of topics in the inventory. Costly: up to RATED_EDGES_MAX requests per
# broker. Pages get the last rates during the next round.
@question(fresh_for_ms=RATES_FRESH_MS, deadline_ms=METRICS_DEADLINE_MS, costly=True)
async def consume_rates(
    session: ClusterSession, pairs: tuple[Pair, ...]
) -> Partial[Mapping[Pair, float | None]]:
    """The consume rate of groups in topics, msg/s, of the first RATED_EDGES_MAX pairs."""
    asked = pairs[:RATED_EDGES_MAX]
    answers = await asyncio.gather(*(session.ask(consume_rate, *pair) for pair in asked))
    return Partial(
        {pair: answer.value for pair, answer in zip(asked, answers, strict=True)},
        merge_failures(*(answer.failures for answer in answers)),
    )


@question(fresh_for_ms=RATES_FRESH_MS)
async def consume_rate(session: ClusterSession, topic: str, group: str) -> Partial[float | None]:
    """The consume rate of a group in a topic, msg/s; None unless all brokers answer."""
    rates, failures = await _rates(session, topic, "GROUP_GET_NUMS", f"{topic}@{group}")
    return Partial(None if failures else sum_known(rates.values()), failures)


@question(fresh_for_ms=RATES_FRESH_MS)
async def put_rates(session: ClusterSession, topic: str) -> Partial[Mapping[str, float | None]]:
    """The produce rate of a topic by broker, msg/s; None before the first count."""
    rates, failures = await _rates(session, topic, "TOPIC_PUT_NUMS", topic)
    return Partial({ref.name: rate for ref, rate in rates.items()}, failures)


async def _rates(
    session: ClusterSession, topic: str, stats_name: str, key: str
) -> tuple[Mapping[BrokerRef, float | None], tuple[BrokerFailure, ...]]:
    configs = (await session.ask(topic_configs)).value
    refs = [ref for ref, table in configs.items() if topic in table]

    async def rate(ref: BrokerRef) -> float | None:
        try:
            data = await session.admin.broker_stats(ref.addr, stats_name, key)
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.SYSTEM_ERROR:
                return None  # nothing was counted under the key
            raise
        return data.stats_minute.tps

    return await session.fan_out(refs, rate, one_must_answer=False)


def _rates_of_topics(
    inventories: Mapping[BrokerRef, GroupInventoryBody],
) -> dict[str, dict[str, Mapping[str, float]]]:
    """Return the consume rates by broker, group and topic of the brokers that report them."""
    return {
        ref.name: {name: entry.topic_tps for name, entry in body.groups.items() if entry.topic_tps}
        for ref, body in inventories.items()
        if all(entry.topic_tps is not None for entry in body.groups.values())
    }


def _by_group(metrics: Mapping[str, TopicMetrics]) -> dict[str, dict[str, int | None]]:
    lags: dict[str, dict[str, int | None]] = {}
    for topic, each in metrics.items():
        for group, lag in each.lags.items():
            lags.setdefault(group, {})[topic] = lag
    return lags


def _by_topic(queues: Iterable[GroupQueue]) -> dict[str, int | None]:
    lags: dict[str, list[int | None]] = {}
    for queue in queues:
        lags.setdefault(queue.topic, []).append(queue.lag)
    return {topic: sum_known(each) for topic, each in lags.items()}
