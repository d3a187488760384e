"""The running info of a consumer as text, and warnings about stuck queues. Pure.

Compatible with ConsumerRunningInfo.formatString, analyzeSubscription and analyzeProcessQueue.
"""

from collections.abc import Iterator, Mapping

from core_broker.mqadmin.java_texts import process_queue_text, queue_text
from core_broker.remoting.bodies import ConsumerRunningInfo, ConsumeType, SubscriptionData

#: Grace period after a consumer's start in which subscriptions of a group may differ, ms.
SETTLING_MS = 120_000
#: Time without consumption after which a queue with cached messages may be stuck, ms.
STUCK_MS = 60_000

_QUEUES = "%-64s  %-32s  %-4s  %-20s"
_OFFSET = "%-32s  %-32s  %-4d  %-20d"
_DETAIL = "%-64s  %-32s  %-4d  %s"
_STATUSES = "%-64s  %14s %14s %14s %14s %18s %25s"
_STATUS = "%-32s  %14.2f %14.2f %14.2f %14.2f %18.2f %25d"
_PROPERTY = "%-40s: %s"


def running_info_lines(info: ConsumerRunningInfo) -> Iterator[str]:
    yield "#Consumer Properties#"
    for entry in info.properties.items():
        yield _PROPERTY % entry
    yield from ("", "", "#Consumer Subscription#")
    for number, data in enumerate(sorted(info.subscription_set, key=lambda data: data.topic), 1):
        mode = "true" if data.class_filter_mode else "false"
        yield (
            f"{number:03d} Topic: {data.topic:<40} ClassFilter: {mode:<8} "
            f"SubExpression: {data.sub_string}"
        )
    queues = sorted(info.mq_table.items())
    yield from ("", "", "#Consumer Offset#")
    yield _QUEUES % ("#Topic", "#Broker Name", "#QID", "#Consumer Offset")
    for queue, state in queues:
        yield _OFFSET % (
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            state.commit_offset,
        )
    yield from ("", "", "#Consumer MQ Detail#")
    yield _QUEUES % ("#Topic", "#Broker Name", "#QID", "#ProcessQueueInfo")
    for queue, state in queues:
        yield _DETAIL % (
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            process_queue_text(state),
        )
    yield from _status_lines(info)
    if info.jstack is not None:
        yield from ("", "", "#Consumer jstack#")
        yield info.jstack


def _status_lines(info: ConsumerRunningInfo) -> Iterator[str]:
    yield from ("", "", "#Consumer RT&TPS#")
    yield _STATUSES % (
        *("#Topic", "#Pull RT", "#Pull TPS", "#Consume RT", "#ConsumeOK TPS"),
        *("#ConsumeFailed TPS", "#ConsumeFailedMsgsInHour"),
    )
    for topic, status in sorted(info.status_table.items()):
        yield _STATUS % (
            topic,
            status.pull_rt,
            status.pull_tps,
            status.consume_rt,
            status.consume_ok_tps,
            status.consume_failed_tps,
            status.consume_failed_msgs,
        )


def same_subscription(infos: Mapping[str, ConsumerRunningInfo], now_ms: int) -> bool:
    """Return True for equal subscriptions of all members, and during the grace period."""
    members = [infos[client_id] for client_id in sorted(infos)]
    if not members or not _is_push(members[0]):
        return True
    started = members[0].properties.get("PROP_CONSUMER_START_TIMESTAMP", "")
    if not started.isascii() or not started.isdigit() or now_ms - int(started) <= SETTLING_MS:
        return True
    first, *others = (_subscriptions(member.subscription_set) for member in members)
    return bool(first) and all(subscriptions == first for subscriptions in others)


def stuck_queue_warnings(client_id: str, info: ConsumerRunningInfo, now_ms: int) -> Iterator[str]:
    """Yield a sentence for each queue that is stuck or cannot be locked."""
    if not _is_push(info):
        return
    orderly = info.properties.get("PROP_CONSUMEORDERLY", "").lower() == "true"
    for queue, state in sorted(info.mq_table.items()):
        subject = f"{client_id} {queue_text(queue)}"
        if not orderly:
            silent_ms = now_ms - state.last_consume_timestamp
            if silent_ms > STUCK_MS and state.cached_msg_count > 0:
                yield f"{subject} can't consume for a while, maybe blocked, {silent_ms}ms"
        elif not state.locked:
            yield f"{subject} can't lock for a while, {now_ms - state.last_lock_timestamp}ms"
        elif state.droped and state.try_unlock_times > 0:
            yield f"{subject} unlock {state.try_unlock_times} times, still failed"


def _is_push(info: ConsumerRunningInfo) -> bool:
    return info.properties.get("PROP_CONSUME_TYPE") == ConsumeType.CONSUME_PASSIVELY


def _subscriptions(data: list[SubscriptionData]) -> set[tuple[str, str, str]]:
    return {(item.topic, item.sub_string, item.expression_type) for item in data}
