"""Brokers' answers as typed rows: unknown is None, never -1 or 0."""

import pytest

from console.gateway.brokers import runtime
from console.gateway.brokers.listing import broker_row
from console.gateway.engine.session import BrokerRef
from console.gateway.groups.listing import group_row
from console.gateway.groups.members import merge_connections, version_text
from console.gateway.groups.metrics import GroupMetrics
from console.gateway.groups.progress import GroupQueue, group_queues, progress_of
from console.gateway.overview import furthest_behind, load_of
from console.gateway.topics.listing import own_names, topic_kind, topic_row
from core_broker.remoting.bodies import (
    BrokerData,
    ClientConnection,
    ClusterInfo,
    ConsumerConnection,
    ConsumeStats,
    MessageQueue,
    OffsetWrapper,
    SubscriptionData,
    SubscriptionGroupConfig,
    TopicConfig,
)

DAY_MS = 86_400_000
REF = BrokerRef("broker-a", 0, "127.0.0.1:10911")
#: As a Java 4.9.8 broker answers, shortened.
RUNTIME = {
    "brokerVersionDesc": "V4_9_8",
    "bootTimestamp": "1795251227608",
    "msgPutTotalTodayNow": "40",
    "msgPutTotalTodayMorning": "15",
    "msgGetTotalTodayNow": "30",
    "msgGetTotalTodayMorning": "30",
    "putTps": "12.5 8.25 3.0",
    "getTransferedTps": "0.0 1.0 2.0",
    "commitLogDiskRatio": "0.32",
    "commitLogDirCapacity": "Total : 252.0 GiB, Free : 69.7 GiB.",
    "commitLogMinOffset": "1000",
    "commitLogMaxOffset": "9705",
    "earliestMessageTimeStamp": "-1",
    "remainHowManyDataToFlush": "1.4 KiB",
    "putMessageAverageSize": "201.5",
    "scheduleMessageOffset_3": "2,2",
    "scheduleMessageOffset_12": "8,9",
    "somethingNew": "x",
}


def test_a_broker_of_the_4_9_line() -> None:
    row = broker_row(REF, "DefaultCluster", RUNTIME)
    assert row.version == "4.9.8"
    assert (row.in_rate, row.out_rate) == (12.5, 0.0)
    assert (row.in_total, row.in_today, row.out_today) == (40, 25, 0)
    assert (row.disk_total, row.disk_free) == (round(252.0 * 1024**3), round(69.7 * 1024**3))
    assert row.stored_bytes == 8705
    assert row.oldest_message_ms is None, "-1 is what a broker says that has no message"


def test_a_broker_of_the_5_x_line_spells_a_key_differently() -> None:
    table = {"getTransferredTps": "7.0 1 1", "brokerVersionDesc": "V5_3_1-SNAPSHOT"}
    row = broker_row(REF, "c", table)
    assert row.out_rate == 7.0
    assert row.version == "5.3.1-SNAPSHOT"


def test_what_a_broker_does_not_tell_is_none() -> None:
    row = broker_row(REF, "c", {})
    unknown = {
        name: getattr(row, name)
        for name in row.__dataclass_fields__
        if name not in {"ref", "state", "cluster_name", "counted_ms"}
    }
    assert set(unknown.values()) == {None}


@pytest.mark.parametrize("text", ["", "abc", "1 2", "1 2 3 4", "-5", "nan", "1e999", "½"])
def test_hostile_numbers_are_unknown_or_numbers(text: str) -> None:
    table = dict.fromkeys(RUNTIME, text)
    row = broker_row(REF, "c", table)
    assert row.in_total is None
    assert runtime.details(table)


def test_details_are_grouped_with_units_and_nothing_is_left_out() -> None:
    groups = runtime.details(RUNTIME)
    shown = {detail.key: detail.value for group in groups for detail in group.details}
    assert set(shown) == set(RUNTIME)
    assert shown["remainHowManyDataToFlush"] == 1434
    assert shown["putMessageAverageSize"] == 202
    assert shown["putTps"] == (12.5, 8.25, 3.0)
    assert shown["commitLogDirCapacity"] == (round(252.0 * 1024**3), round(69.7 * 1024**3))
    assert shown["scheduleMessageOffset_12"] == "8 / 9"
    assert [str(group.title) for group in groups][-2:] == ["Delay levels", "Other"]


@pytest.mark.parametrize(
    ("text", "shown"), [("67.50", 67.5), ("12", 12.0), ("0.00", None), ("-1", None), ("", None)]
)
def test_a_percentile_has_decimals_and_is_unknown_without_messages(
    text: str, shown: float | None
) -> None:
    (group,) = runtime.details({"putLatency99": text})
    assert [detail.value for detail in group.details] == [shown]


def test_the_time_since_the_start_is_a_duration() -> None:
    text = "[ 1 days, 3 hours, 25 minutes, 45 seconds ]"
    (group,) = runtime.details({"runtime": text})
    assert [(each.kind, each.value) for each in group.details] == [("running", 98_745_000)]
    (group,) = runtime.details({"runtime": "long"})
    assert [each.value for each in group.details] == [None]


def test_constants_of_a_gantry_broker_are_no_measurements() -> None:
    table = {
        **RUNTIME,
        "dispatchMaxBuffer": "0",
        "remainTransientStoreBufferNumbs": "2147483647",
        "gantryUnmeasured": "dispatchMaxBuffer,putMessageAverageSize",
    }
    lines = {line.key: line for group in runtime.details(table) for line in group.details}
    assert (lines["dispatchMaxBuffer"].value, lines["dispatchMaxBuffer"].measured) == (None, False)
    assert lines["putMessageAverageSize"].value is None
    assert lines["remainTransientStoreBufferNumbs"].value is None, "RocketMQ's number of no pool"
    assert "gantryUnmeasured" not in lines
    of_java = {line.key: line for group in runtime.details(RUNTIME) for line in group.details}
    assert all(line.measured for line in of_java.values())


@pytest.mark.parametrize(
    ("changes", "begins", "from_ms"),
    [
        ({}, "midnight", None),
        ({"msgPutTotalTodayMorning": "0"}, "midnight", None),
        (
            {"msgPutTotalTodayMorning": "0", "msgGetTotalTodayMorning": "0"},
            "start",
            1795251227608,
        ),
        ({"gantryTodayFrom": "1795251227608"}, "start", 1795251227608),
        ({"gantryTodayFrom": "1795305600000"}, "midnight", 1795305600000),
    ],
)
def test_today_is_the_day_since_midnight_or_named_since_start(
    changes: dict[str, str], begins: str, from_ms: int | None
) -> None:
    row = broker_row(REF, "c", RUNTIME | changes)
    assert (row.today_begins, row.today_from_ms) == (begins, from_ms)


def config(name: str, **settings: object) -> TopicConfig:
    return TopicConfig(topic_name=name, **{"read_queue_nums": 4, "write_queue_nums": 8, **settings})


INFO = ClusterInfo(
    broker_addr_table={"broker-a": BrokerData(cluster="C1", broker_name="broker-a")},
    cluster_addr_table={"C1": ["broker-a"]},
)


@pytest.mark.parametrize(
    ("name", "attributes", "kind"),
    [
        ("orders", None, "unspecified"),
        ("orders", {"message.type": "FIFO"}, "fifo"),
        ("orders", {"message.type": "DELAY"}, "delay"),
        ("orders", {"message.type": "TRANSACTION"}, "transaction"),
        ("orders", {"message.type": "NORMAL"}, "normal"),
        ("orders", {"message.type": "LATER_KIND"}, "unspecified"),
        ("%RETRY%g", None, "retry"),
        ("%DLQ%g", None, "dlq"),
        ("TBW102", None, "system"),
        ("rmq_sys_SYNC", None, "system"),
        ("broker-a", None, "system"),
        ("C1", None, "system"),
        ("C1_REPLY_TOPIC", None, "system"),
    ],
)
def test_what_a_topic_is_for(name: str, attributes: dict[str, str] | None, kind: str) -> None:
    assert topic_kind(name, [config(name, attributes=attributes)], own_names(INFO)) == kind


def test_a_topic_adds_up_its_brokers_and_says_when_they_differ() -> None:
    row = topic_row("t", {"b": config("t"), "a": config("t", perm=4)}, frozenset())
    assert (row.read_queues, row.write_queues, row.brokers) == (8, 16, ("a", "b"))
    assert row.drift
    assert row.perm is None
    same = topic_row("t", {"b": config("t"), "a": config("t")}, frozenset())
    assert (same.drift, same.perm) == (False, 6)


def stats(*offsets: tuple[str, int, int, int]) -> ConsumeStats:
    return ConsumeStats(
        offset_table={
            MessageQueue(topic, "broker-a", number): OffsetWrapper(
                broker_offset=stored, consumer_offset=consumed, last_timestamp=stamp
            )
            for number, (topic, stored, consumed, stamp) in enumerate(offsets)
        },
        consume_tps=1.5,
    )


def test_progress_adds_up_what_is_known() -> None:
    queues = group_queues(
        "broker-a",
        stats(("t", 10, 4, 500), ("t", 5, 5, 900), ("t", 9, -1, 0), ("%RETRY%g", 3, 1, 700)),
    )
    progress = progress_of(queues, [1.5])
    assert progress is not None
    assert (progress.lag, progress.retry_lag) == (8, 2)
    assert progress.behind_since_ms == 500
    assert progress.topics == ("t",)
    assert queues[2].consumer_offset is None
    assert queues[2].lag is None


def test_a_group_that_consumed_nothing_has_no_progress() -> None:
    assert progress_of([], []) is None
    unknown = GroupQueue("t", "a", 0, None, None, None)
    progress = progress_of([unknown], [0.0])
    assert progress is not None
    assert progress.lag is None, "no queue could tell"


def test_an_offset_beyond_the_end_is_no_negative_lag() -> None:
    assert group_queues("a", stats(("t", 3, 9, 0)))[0].lag == 0


def test_a_group_says_when_its_brokers_differ() -> None:
    configs = {
        "a": SubscriptionGroupConfig(group_name="g"),
        "b": SubscriptionGroupConfig(group_name="g", consume_enable=False),
    }
    row = group_row("g", configs)
    assert (row.drift, row.enabled) == (True, False)


def connection(*client_ids: str) -> ConsumerConnection:
    return ConsumerConnection(
        connection_set=[
            ClientConnection(client_id=one, client_addr="h:1", language="JAVA", version=409)
            for one in client_ids
        ],
        subscription_table={"t": SubscriptionData(topic="t", sub_string="A || B")},
        message_model="BROADCASTING",
    )


def test_a_client_that_several_brokers_see_is_listed_once() -> None:
    other = BrokerRef("broker-b", 0, "h:2")
    members = merge_connections({REF: connection("c1", "c2"), other: connection("c2")})
    assert [(one.client_id, one.brokers) for one in members.clients] == [
        ("c1", ("broker-a",)),
        ("c2", ("broker-a", "broker-b")),
    ]
    assert members.broadcasting
    assert members.subscriptions[0].sub_string == "A || B"


def test_nobody_connected_is_an_answer() -> None:
    members = merge_connections({REF: None})
    assert not members.online
    assert members.consume_type is None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (213, "4.0.0"),
        (273, "4.3.0"),
        (408, "4.9.8-SNAPSHOT"),
        (409, "4.9.8"),
        (413, "5.0.0"),
        (481, "5.3.4"),
        (127, "3.x"),
        (0, "3.x"),
    ],
)
def test_versions_of_clients(number: int, text: str) -> None:
    assert version_text(number) == text


@pytest.mark.parametrize(
    ("expiry", "expected_ms"),
    [
        ("1", 1),
        (str(40 * DAY_MS), 40 * DAY_MS),
        (str(40 * DAY_MS + 1), None),
        ("-1", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_certificate_that_ends_within_30_days(expiry: str, expected_ms: int | None) -> None:
    table = {"gantryTlsMode": "permissive", "gantryTlsExpiryTimestamp": expiry}
    assert runtime.expiring_certificate_ms(table, 10 * DAY_MS) == expected_ms
    assert runtime.expiring_certificate_ms({}, 10 * DAY_MS) is None


def test_the_load_counts_masters_only_and_leaves_unknown_out() -> None:
    master = broker_row(REF, "c", RUNTIME)
    slave = broker_row(BrokerRef("broker-a", 1, "h:3"), "c", RUNTIME)
    silent = broker_row(BrokerRef("broker-b", 0, "h:4"), "c", {})
    load = load_of([master, slave, silent])
    assert (load.in_rate, load.in_today, load.stored_bytes) == (12.5, 25, 8705)
    assert load_of([silent]).in_rate is None
    assert load.today_begins == "midnight"
    started = broker_row(BrokerRef("b", 0, "h:5"), "c", {**RUNTIME, "gantryTodayFrom": "1"})
    fresh = broker_row(
        BrokerRef("c", 0, "h:6"), "c", {"bootTimestamp": "1", "gantryTodayFrom": "1"}
    )
    assert load_of([started, fresh]).today_begins == "mixed"
    assert load_of([]).disk_ratio is None


def test_furthest_behind_leaves_out_those_who_are_not() -> None:
    lags = {"b": 5, "a": 5, "c": 0, "d": None, "e": 9, "gone": 7}
    rows = [
        group_row(name, {"a": SubscriptionGroupConfig(group_name=name)})
        for name in (*sorted(lags.keys() - {"gone"}), "unknown")
    ]
    numbers = {name: GroupMetrics(lag, 0, None, None, (), None, None) for name, lag in lags.items()}
    found = furthest_behind(rows, numbers, lambda _name: 0)
    assert [one.name for one in found] == ["e", "a", "b"]


@pytest.mark.parametrize(
    ("lag", "pending_ago_ms", "behind"),
    [
        (0, None, False),
        (None, None, False),
        (50_000, 4_900, False),
        (50_000, 5_900, False),
        (1, 6_000, True),
        (1, None, True),
    ],
)
def test_lag_within_one_commit_interval_is_not_behind(
    lag: int | None, pending_ago_ms: int | None, behind: bool
) -> None:
    since_ms = None if pending_ago_ms is None else 1_000_000 - pending_ago_ms
    numbers = GroupMetrics(lag, 0, since_ms, 1.0, ("T",), 1, 0)
    assert numbers.is_behind(1_000_000) is behind
    row = group_row("g", {"a": SubscriptionGroupConfig(group_name="g")})
    assert bool(furthest_behind([row], {"g": numbers}, lambda _name: 1_000_000)) is behind
