"""processors/consume_stats.py and runtime_info.py: how far groups are behind, how the broker is."""

import pytest

from core_broker.client.admin.inventory import unmeasured_keys
from core_broker.message.topics import TOOLS_CONSUMER_GROUP
from core_broker.processors.runtime_info import duration_text, size_text
from core_broker.remoting.bodies import (
    ConsumerData,
    ConsumeStats,
    ConsumeStatsList,
    HeartbeatData,
    KVTable,
    MessageQueue,
    QueryConsumeTimeSpanBody,
    SubscriptionData,
    SubscriptionGroupConfig,
    decode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import (
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)
from core_broker.state.day_totals import Totals
from core_broker.store.put_times import WINDOW_MS
from tests.support.broker_harness import BrokerHarness

Q0 = MessageQueue("T", "b", 0)

KEYS_OF_4_9_8 = """
    EndTransactionQueueSize EndTransactionThreadPoolQueueCapacity bootTimestamp brokerVersion
    brokerVersionDesc commitLogDirCapacity commitLogDiskRatio commitLogMaxOffset commitLogMinOffset
    consumeQueueDiskRatio dispatchBehindBytes dispatchMaxBuffer earliestMessageTimeStamp
    getFoundTps getMessageEntireTimeMax getMissTps getTotalTps getTransferedTps getTransferredTps
    msgGetTotalTodayMorning msgGetTotalTodayNow msgGetTotalYesterdayMorning msgPutTotalTodayMorning
    msgPutTotalTodayNow msgPutTotalYesterdayMorning pageCacheLockTimeMills
    pullThreadPoolQueueCapacity pullThreadPoolQueueHeadWaitTimeMills pullThreadPoolQueueSize
    putMessageAverageSize putMessageDistributeTime putMessageEntireTimeMax putMessageSizeTotal
    putMessageTimesTotal putTps queryThreadPoolQueueCapacity queryThreadPoolQueueHeadWaitTimeMills
    queryThreadPoolQueueSize remainHowManyDataToFlush remainTransientStoreBufferNumbs runtime
    sendThreadPoolQueueCapacity sendThreadPoolQueueHeadWaitTimeMills sendThreadPoolQueueSize
    startAcceptSendRequestTimeStamp
"""


async def stats(broker: BrokerHarness, group: str = "CG", topic: str | None = None) -> ConsumeStats:
    header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
    response = await broker.ask(RequestCode.GET_CONSUME_STATS, header)
    assert response.code == 0
    return decode_body(ConsumeStats, response.body)


async def subscribe(broker: BrokerHarness, topic: str) -> None:
    consumer = ConsumerData(group_name="CG", subscription_data_set=[SubscriptionData(topic=topic)])
    beat = HeartbeatData(client_id="c", consumer_data_set=[consumer])
    await broker.ask(RequestCode.HEART_BEAT, body=beat)


class TestOfAGroup:
    async def test_all_topics_with_offsets(self, broker: BrokerHarness, topic: str) -> None:
        for _ in range(5):
            await broker.send(topic)
        broker.ctx.offsets.commit("CG", topic, 0, 3)
        broker.ctx.offsets.commit("CG", "Deleted", 0, 3)
        table = (await stats(broker)).offset_table
        assert len(table) == 4
        assert (table[Q0].broker_offset, table[Q0].consumer_offset) == (5, 3)
        assert table[Q0].last_timestamp == broker.now_ms

    async def test_a_topic_without_an_offset(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic)
        lag = (await stats(broker, topic=topic)).offset_table[Q0]
        assert (lag.broker_offset, lag.consumer_offset, lag.last_timestamp) == (1, 0, 0)

    async def test_unsubscribed_topics_are_left_out(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        broker.ctx.offsets.commit("CG", topic, 0, 1)
        await subscribe(broker, "Other")
        assert (await stats(broker)).offset_table == {}
        await subscribe(broker, topic)
        assert len((await stats(broker)).offset_table) == 4

    async def test_nothing_known(self, broker: BrokerHarness) -> None:
        assert (await stats(broker, "NOPE")).offset_table == {}


class TestOfTheBroker:
    async def test_all_groups(self, broker: BrokerHarness, topic: str) -> None:
        broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG"), 0)
        for _ in range(5):
            await broker.send(topic)
        broker.ctx.offsets.commit("CG", topic, 0, 2)
        response = await broker.ask(
            RequestCode.GET_BROKER_CONSUME_STATS, GetConsumeStatsInBrokerHeader()
        )
        body = decode_body(ConsumeStatsList, response.body)
        assert (body.broker_addr, body.total_diff) == ("127.0.0.1:10911", 3)
        by_group = {name: each for row in body.consume_stats_list for name, each in row.items()}
        assert by_group["TOOLS_CONSUMER"] == []
        assert by_group["CG"][0].offset_table[Q0].broker_offset == 5

    async def test_ordered_topics_only(self, broker: BrokerHarness, topic: str) -> None:
        broker.ctx.groups.put(SubscriptionGroupConfig(group_name="CG"), 0)
        broker.ctx.offsets.commit("CG", topic, 0, 0)
        header = GetConsumeStatsInBrokerHeader(is_order=True)
        response = await broker.ask(RequestCode.GET_BROKER_CONSUME_STATS, header)
        rows = decode_body(ConsumeStatsList, response.body).consume_stats_list
        assert {"CG": []} in rows


class TestTimeSpan:
    async def test_of_every_queue(self, broker: BrokerHarness, topic: str) -> None:
        start = broker.now_ms
        for _ in range(3):
            await broker.send(topic)
            broker.now_ms += 1_000
        broker.ctx.offsets.commit("CG", topic, 0, 2)
        header = QueryConsumeTimeSpanRequestHeader(topic=topic, group="CG")
        response = await broker.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, header)
        spans = decode_body(QueryConsumeTimeSpanBody, response.body).consume_time_span_set
        assert len(spans) == 4
        span = spans[0]
        assert (span.min_time_stamp, span.max_time_stamp) == (start, start + 2_000)
        assert (span.consume_time_stamp, span.delay_time) == (start + 1_000, 1_000)
        assert (spans[1].min_time_stamp, spans[1].delay_time) == (-1, 0)

    async def test_of_no_topic(self, broker: BrokerHarness) -> None:
        header = QueryConsumeTimeSpanRequestHeader(topic="NOPE", group="CG")
        response = await broker.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, header)
        assert (response.code, response.remark) == (17, "topic[NOPE] not exist")


class TestRuntimeInfo:
    async def table(self, broker: BrokerHarness) -> dict[str, str]:
        response = await broker.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        return decode_body(KVTable, response.body).table

    async def test_has_every_key_of_4_9_8(self, broker: BrokerHarness) -> None:
        table = await self.table(broker)
        assert set(KEYS_OF_4_9_8.split()) <= set(table)
        folder = broker.ctx.config.commit_log_dir
        assert f"commitLogDiskRatio_{folder}" in table
        assert (table["brokerVersion"], table["brokerVersionDesc"]) == ("409", "V4_9_8")

    async def test_names_the_values_that_nothing_measures(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        before = await self.table(broker)
        unmeasured = unmeasured_keys(before)
        assert {"pageCacheLockTimeMills", "dispatchMaxBuffer"} <= unmeasured <= set(before)
        await broker.send(topic)
        await broker.pull(topic)
        after = await self.table(broker)
        # Slow reads beside the fast path change the longest read.
        changed = {key for key in unmeasured if before[key] != after[key]}
        assert changed <= {"getMessageEntireTimeMax"}

    async def test_put_times_are_of_the_last_finished_minute(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        store = broker.ctx.store
        store.tick(0)
        await broker.send(topic)
        await broker.send(topic)
        before = await self.table(broker)
        assert (before["putLatency99"], before["putLatency999"]) == ("0.00", "0.00")
        store.tick(WINDOW_MS)
        after = await self.table(broker)
        assert 0 < float(after["putLatency99"]) <= float(after["putLatency999"])
        counts = [int(each.partition(":")[2]) for each in after["putMessageDistributeTime"].split()]
        assert (len(counts), sum(counts)) == (13, 2)
        assert after["putMessageDistributeTime"].startswith("[<=0ms]:")

    async def test_totals_of_today_count_from_start_or_midnight(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        assert (await self.table(broker))["gantryTodayFrom"] == str(broker.ctx.boot_ms)
        await broker.send(topic)
        broker.ctx.day_totals.day_begins(Totals(1, 0), broker.ctx.boot_ms + 500)
        table = await self.table(broker)
        assert table["gantryTodayFrom"] == str(broker.ctx.boot_ms + 500)
        assert table["msgPutTotalTodayMorning"] == "1"

    async def test_pulls_of_tools_are_no_consumption(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        for _ in range(3):
            await broker.send(topic)
        await broker.pull(topic, consumer_group=TOOLS_CONSUMER_GROUP)
        totals = broker.ctx.statistics.totals()
        assert totals["GROUP_GET_NUMS"] == {f"T@{TOOLS_CONSUMER_GROUP}": 3}
        assert "BROKER_GET_NUMS" not in totals
        assert (await self.table(broker))["msgGetTotalTodayNow"] == "0"
        await broker.pull(topic, max_msg_nums=2)
        assert (await self.table(broker))["msgGetTotalTodayNow"] == "2"
        assert broker.ctx.store.stats().get_found_times == 1

    async def test_values_can_be_parsed_by_tools(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic)
        await broker.pull(topic)
        table = await self.table(broker)
        for key in ("putTps", "getTransferedTps", "getTransferredTps", "getTotalTps"):
            assert len([float(part) for part in table[key].split(" ")]) == 3
        for key in ("msgPutTotalTodayNow", "msgGetTotalTodayNow", "earliestMessageTimeStamp"):
            assert int(table[key]) >= 1
        for key in ("commitLogDiskRatio", "consumeQueueDiskRatio", "putMessageAverageSize"):
            float(table[key])
        assert table["runtime"] == "[ 0 days, 0 hours, 0 minutes, 0 seconds ]"

    async def test_delay_levels_that_delivered(self, broker: BrokerHarness, topic: str) -> None:
        for _ in range(2):
            await broker.send(topic, b"", "DELAY\x011")
        broker.now_ms += 1_000
        broker.delays.deliver_due()
        await broker.send(topic, b"", "DELAY\x011")
        assert (await self.table(broker))["scheduleMessageOffset_1"] == "2,3"

    @pytest.mark.parametrize(
        ("size", "text"),
        [(0, "0 B"), (1023, "1023 B"), (1434, "1.4 KiB"), (252 * 1024**3, "252.0 GiB"),
         (2**70, "1024.0 EiB")],
    )  # fmt: skip
    def test_sizes(self, size: int, text: str) -> None:
        assert size_text(size) == text

    def test_durations(self) -> None:
        text = duration_text(2 * 86400 + 3 * 3600 + 4 * 60 + 5)
        assert text == "[ 2 days, 3 hours, 4 minutes, 5 seconds ]"
