"""Runtime information of the broker: code 28, a table of texts.

Keys and value formats are compatible with RocketMQ 4.9.8's AdminBrokerProcessor.prepareRuntimeInfo;
`mqadmin clusterList`, dashboards and Apache's exporter parse the values as numbers, and the
exporter fails without a key. So the table has all keys; `gantryUnmeasured` lists the keys with a
constant value, such as the wait in thread pools, which Gantry does not have. `gantryTodayFrom` is
the time from which the totals of today count, `gantryTlsExpiryTimestamp` the end of validity of the
TLS certificate in use.
"""

import shutil
from pathlib import Path

from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import KVTable, encode_body
from core_broker.remoting.bodies.inventory import (
    CODES_SEPARATOR,
    GANTRY_CODES_KEY,
    GANTRY_REFUSAL_KEY,
    GANTRY_TLS_EXPIRY_KEY,
    GANTRY_TLS_MODE_KEY,
    GANTRY_TODAY_KEY,
    GANTRY_UNMEASURED_KEY,
)
from core_broker.remoting.codes import PROTOCOL_VERSION, RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.store.stats import Rates, StoreStats

VERSION_TEXT = "V4_9_8"
TRANSACTION_QUEUE_CAPACITY = 100_000
QUERY_QUEUE_CAPACITY = 20_000

#: Request codes that this broker answers beyond RocketMQ's protocol.
GANTRY_CODES = (
    RequestCode.GET_TOPIC_INVENTORY,
    RequestCode.GET_GROUP_INVENTORY,
    RequestCode.GET_ALL_CLIENTS,
    RequestCode.SET_GROUP_OFFSETS,
    RequestCode.GET_ACCESS_INVENTORY,
    RequestCode.UPDATE_ACCESS_ACCOUNT,
    RequestCode.KICK_CLIENT,
)

#: Keys whose values are constants or, with the longest read, miss the reads of the fast path.
UNMEASURED = (
    "EndTransactionQueueSize",
    "EndTransactionThreadPoolQueueCapacity",
    "dispatchBehindBytes",
    "dispatchMaxBuffer",
    "getMessageEntireTimeMax",
    "pageCacheLockTimeMills",
    "pullThreadPoolQueueHeadWaitTimeMills",
    "pullThreadPoolQueueSize",
    "queryThreadPoolQueueCapacity",
    "queryThreadPoolQueueHeadWaitTimeMills",
    "queryThreadPoolQueueSize",
    "remainTransientStoreBufferNumbs",
    "sendThreadPoolQueueHeadWaitTimeMills",
)

_UNITS = "KMGTPE"


class RuntimeInfoProcessor:
    """Builds the table."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def show(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_RUNTIME_INFO (28)."""
        return RemotingCommand.response(body=encode_body(KVTable(table=self.table())))

    def table(self) -> dict[str, str]:
        """All keys with their values as text."""
        stats = self._ctx.store.stats()
        return {
            **self._age(),
            **_work(stats, self._ctx.statistics.get_time_max_ms),
            **self._days(stats),
            **self._log(stats),
            **self._delays(),
            **self._queues(stats),
            **self._tls(),
            **self._refusal(),
            GANTRY_UNMEASURED_KEY: CODES_SEPARATOR.join(UNMEASURED),
        }

    def _age(self) -> dict[str, str]:
        ctx = self._ctx
        return {
            "bootTimestamp": str(ctx.boot_ms),
            "runtime": duration_text((ctx.now_ms() - ctx.boot_ms) // 1000),
            "brokerVersion": str(PROTOCOL_VERSION),
            "brokerVersionDesc": VERSION_TEXT,
            "startAcceptSendRequestTimeStamp": str(ctx.config.start_accept_send_request_time_stamp),
            GANTRY_CODES_KEY: CODES_SEPARATOR.join(str(code.value) for code in GANTRY_CODES),
        }

    def _refusal(self) -> dict[str, str]:
        reason = self._ctx.store.read_only_reason
        return {GANTRY_REFUSAL_KEY: reason} if reason else {}

    def _tls(self) -> dict[str, str]:
        tls = self._ctx.tls
        if tls is None:
            return {}
        table: dict[str, str] = {GANTRY_TLS_MODE_KEY: tls.mode}
        if tls.expires_s is not None:
            table[GANTRY_TLS_EXPIRY_KEY] = str(int(tls.expires_s * 1000))
        return table

    def _days(self, stats: StoreStats) -> dict[str, str]:
        days = self._ctx.day_totals
        return {
            "msgPutTotalYesterdayMorning": str(days.yesterday_morning.put),
            "msgPutTotalTodayMorning": str(days.today_morning.put),
            "msgPutTotalTodayNow": str(stats.put_times_total),
            "msgGetTotalYesterdayMorning": str(days.yesterday_morning.got),
            "msgGetTotalTodayMorning": str(days.today_morning.got),
            "msgGetTotalTodayNow": str(stats.get_transferred_messages),
            GANTRY_TODAY_KEY: str(days.midnight_ms or self._ctx.boot_ms),
        }

    def _log(self, stats: StoreStats) -> dict[str, str]:
        folder = Path(self._ctx.config.commit_log_dir)
        disk = shutil.disk_usage(folder)
        ratio = f"{stats.commit_log_disk_ratio:.2f}"
        return {
            "commitLogMinOffset": str(stats.commit_log_min_offset),
            "commitLogMaxOffset": str(stats.commit_log_max_offset),
            "commitLogDiskRatio": ratio,
            f"commitLogDiskRatio_{folder}": ratio,
            "consumeQueueDiskRatio": f"{stats.consume_queue_disk_ratio:.2f}",
            "commitLogDirCapacity": (
                f"Total : {size_text(disk.total)}, Free : {size_text(disk.free)}."
            ),
            "dispatchBehindBytes": "0",
            "remainHowManyDataToFlush": size_text(stats.to_flush_bytes),
            "remainTransientStoreBufferNumbs": str(2**31 - 1),
            "earliestMessageTimeStamp": str(stats.earliest_message_timestamp),
            "pageCacheLockTimeMills": "0",
            "dispatchMaxBuffer": "0",
        }

    def _delays(self) -> dict[str, str]:
        progress, store = self._ctx.delay_progress, self._ctx.store
        table = {}
        for level in progress.levels:
            end = store.queue_range(SCHEDULE_TOPIC, level - 1)[1]
            table[f"scheduleMessageOffset_{level}"] = f"{progress.offset(level)},{end}"
        return table

    def _queues(self, stats: StoreStats) -> dict[str, str]:
        config = self._ctx.config
        capacities = {
            "send": config.send_thread_pool_queue_capacity,
            "pull": config.pull_thread_pool_queue_capacity,
            "query": QUERY_QUEUE_CAPACITY,
        }
        table = {
            "EndTransactionQueueSize": "0",
            "EndTransactionThreadPoolQueueCapacity": str(TRANSACTION_QUEUE_CAPACITY),
        }
        for pool, capacity in capacities.items():
            table[f"{pool}ThreadPoolQueueSize"] = "0"
            table[f"{pool}ThreadPoolQueueCapacity"] = str(capacity)
            table[f"{pool}ThreadPoolQueueHeadWaitTimeMills"] = "0"
        # Sends wait for the disk with SYNC_FLUSH, and for slaves with SYNC_MASTER.
        replicas = self._ctx.replicas
        waiting = stats.flush_waiters + (0 if replicas is None else replicas.waiting)
        table["sendThreadPoolQueueSize"] = str(waiting)
        return table


def _work(stats: StoreStats, get_time_max_ms: int) -> dict[str, str]:
    found, missed = stats.get_found_tps, stats.get_missed_tps
    transferred = _rates_text(stats.get_transferred_tps)
    return {
        "putMessageTimesTotal": str(stats.put_times_total),
        "putMessageFailedTimes": str(stats.put_failed_times),
        "putMessageSizeTotal": str(stats.put_size_total),
        "putMessageAverageSize": str(stats.put_average_size),
        "putMessageEntireTimeMax": str(stats.put_entire_time_max_ms),
        "putMessageDistributeTime": "".join(
            f"[{times}]:{messages} " for times, messages in stats.put_distribution.items()
        ),
        # 0.00 after a minute without messages.
        "putLatency99": f"{stats.put_p99_ms or 0:.2f}",
        "putLatency999": f"{stats.put_p999_ms or 0:.2f}",
        "getMessageEntireTimeMax": str(get_time_max_ms),
        "putTps": _rates_text(stats.put_tps),
        "getFoundTps": _rates_text(found),
        "getMissTps": _rates_text(missed),
        "getTotalTps": _rates_text(
            (found[0] + missed[0], found[1] + missed[1], found[2] + missed[2])
        ),
        # RocketMQ 4.9 writes the misspelled key; 5.x reads both spellings.
        "getTransferedTps": transferred,
        "getTransferredTps": transferred,
    }


def _rates_text(rates: Rates) -> str:
    return " ".join(str(rate) for rate in rates)


def duration_text(seconds: int) -> str:
    """A duration in RocketMQ's text form."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    return f"[ {day} days, {hour} hours, {minute} minutes, {second} seconds ]"


def size_text(size: int) -> str:
    """A number of bytes in RocketMQ's text form: 1.4 KiB."""
    if size < 1024:
        return f"{size} B"
    value = size / 1024
    for unit in _UNITS[:-1]:
        if value < 1024:
            return f"{value:.1f} {unit}iB"
        value /= 1024
    return f"{value:.1f} {_UNITS[-1]}iB"
