"""startMonitoring: lag of all groups and warnings about stuck consumers, in rounds.

Compatible with RocketMQ's MonitorService, except that MonitorService writes to a log file.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from core_broker.client import ConsumeStatus, MessageExt, PushConsumer
from core_broker.client.admin import AdminClient
from core_broker.client.identity import now_ms
from core_broker.errors import GantryError
from core_broker.message.topics import OFFSET_MOVED_EVENT_TOPIC
from core_broker.mqadmin.command import command, number, rounds
from core_broker.mqadmin.lookup import (
    group_connection,
    group_names,
    group_stats,
    running_info,
    topic_addrs,
)
from core_broker.mqadmin.polling import poll
from core_broker.mqadmin.running_info import same_subscription, stuck_queue_warnings
from core_broker.mqadmin.session import Session
from core_broker.remoting.bodies import ConsumerRunningInfo, MessageQueue, OffsetWrapper

MONITOR_GROUP: Final = "__MONITOR_CONSUMER"
ROUND_S_DEFAULT: Final = 60
_PREFIX: Final = "[MONITOR] "
_NOTIFY: Final = "[MONITOR]  [NOTIFY] "
_RULE: Final = "=" * 41


@dataclass(frozen=True, slots=True)
class UndoneMsgs:
    """The lag of a group in one topic: messages in all queues and in the worst queue."""

    group: str
    topic: str
    total: int
    single_queue: int
    delay_ms: int

    def line(self) -> str:
        return (
            f"{_PREFIX}reportUndoneMsgs: UndoneMsgs [consumerGroup={self.group}, "
            f"topic={self.topic}, undoneMsgsTotal={self.total}, "
            f"undoneMsgsSingleMQ={self.single_queue}, undoneMsgsDelayTimeMills={self.delay_ms}]"
        )

    def record(self) -> dict[str, Any]:
        return {
            "consumerGroup": self.group,
            "topic": self.topic,
            "undoneMsgsTotal": self.total,
            "undoneMsgsSingleMQ": self.single_queue,
            "undoneMsgsDelayTimeMills": self.delay_ms,
        }


@command("startMonitoring")
@number("--interval", high=86_400, default=ROUND_S_DEFAULT, help="seconds between two rounds")
@rounds()
async def start_monitoring(session: Session, interval: int, rounds: int) -> None:
    """Runs until Ctrl-C. JSON output is one document for each round and each deletion event."""
    consumer = PushConsumer(MONITOR_GROUP, session.namesrv_addr, rpc_hooks=session.rpc_hooks)
    consumer.subscribe(OFFSET_MOVED_EVENT_TOPIC)

    @consumer.listener
    async def deleted(messages: list[MessageExt]) -> ConsumeStatus:
        for message in messages:
            _show_deletion(session, message)
        return ConsumeStatus.CONSUME_SUCCESS

    async with consumer:
        async for _ in poll(interval, rounds):
            await _round(session)


def _show_deletion(session: Session, message: MessageExt) -> None:
    """Print an OFFSET_MOVED_EVENT: a group has pulled messages that the broker has deleted."""
    try:
        event = msgspec.json.decode(message.body)
    except msgspec.DecodeError:
        return
    document = {"deleteMsgsEvent": event, "eventTimestamp": message.store_timestamp}
    text = message.body.decode("utf-8", "replace")
    line = (
        f"{_PREFIX}reportDeleteMsgsEvent: DeleteMsgsEvent [offsetMovedEvent={text}, "
        f"eventTimestamp={message.store_timestamp}]"
    )
    session.out.show(document, [line])


async def _round(session: Session) -> None:
    session.out.show_text(f"{_PREFIX}{_RULE}beginRound")
    undone: list[UndoneMsgs] = []
    notices: list[dict[str, str]] = []
    for group in await group_names(session.admin):
        try:
            infos = await _running_infos(session.admin, group)
            undone += await _undone(session.admin, group)
        except GantryError:
            continue  # the group is offline or has no offsets
        notices += _notices(group, infos)
    document = {"undone": [lag.record() for lag in undone], "notices": notices}
    lines = [lag.line() for lag in undone]
    lines += [f"{_NOTIFY}reportConsumerRunningInfo: {notice['text']}" for notice in notices]
    session.out.show(document, [*lines, f"{_PREFIX}{_RULE}endRound"])


async def _running_infos(admin: AdminClient, group: str) -> dict[str, ConsumerRunningInfo]:
    """Return the running info by client id; clients in other languages may not answer."""
    infos = {}
    for client in (await group_connection(admin, group)).connection_set:
        try:
            infos[client.client_id] = await running_info(admin, group, client.client_id)
        except GantryError:
            continue
    return infos


def _notices(group: str, infos: dict[str, ConsumerRunningInfo]) -> list[dict[str, str]]:
    now = now_ms()
    notices = []
    if not same_subscription(infos, now):
        text = f"ConsumerGroup: {group}, Subscription different"
        notices.append({"consumerGroup": group, "text": text})
    for client_id, info in sorted(infos.items()):
        for warning in stuck_queue_warnings(client_id, info, now):
            text = f"ConsumerGroup: {group}, ClientId: {client_id}, {warning}"
            notices.append({"consumerGroup": group, "clientId": client_id, "text": text})
    return notices


async def _undone(admin: AdminClient, group: str) -> list[UndoneMsgs]:
    by_topic: dict[str, dict[MessageQueue, OffsetWrapper]] = defaultdict(dict)
    for queue, entry in (await group_stats(admin, group)).offset_table.items():
        by_topic[queue.topic][queue] = entry
    undone = []
    for topic, table in sorted(by_topic.items()):
        diffs = [max(entry.broker_offset - entry.consumer_offset, 0) for entry in table.values()]
        addrs = await topic_addrs(admin, topic)
        delays = [
            await _delay_ms(admin, addrs[queue.broker_name], queue, entry)
            for queue, entry in table.items()
            if queue.broker_name in addrs
        ]
        undone.append(UndoneMsgs(group, topic, sum(diffs), max(diffs), max(delays, default=0)))
    return undone


async def _delay_ms(
    admin: AdminClient, addr: str, queue: MessageQueue, entry: OffsetWrapper
) -> int:
    """Return the time between the last consumed and the last stored message, ms."""
    if entry.last_timestamp <= 0 or entry.broker_offset <= 0:
        return 0
    last_offset = entry.broker_offset - 1
    try:
        pull = await admin.pull(addr, queue.topic, queue.queue_id, last_offset, 1)
    except GantryError:
        return 0
    newest = (message.store_timestamp for message in pull.messages[:1])
    return max(next(newest, entry.last_timestamp) - entry.last_timestamp, 0)
