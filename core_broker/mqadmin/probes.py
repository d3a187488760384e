"""Sending: one message, or many messages with the response time of each."""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from core_broker.client import Message, Producer
from core_broker.client.hooks import ClientHook
from core_broker.client.results import SendResult
from core_broker.errors import ClientError, GantryError
from core_broker.limits import MESSAGE_BYTES_MAX
from core_broker.message.topics import validate_topic
from core_broker.mqadmin.command import command, flag, number, rounds, text
from core_broker.mqadmin.java_texts import send_result_text
from core_broker.mqadmin.lookup import NO_SUCH_CLUSTER
from core_broker.mqadmin.output import Column, Table
from core_broker.mqadmin.polling import poll
from core_broker.mqadmin.session import NotFound, Session
from core_broker.remoting.bodies import MessageQueue

GROUP: Final = "PID_SMSC"
AMOUNT_MAX: Final = 1_000_000
SIZE_MAX: Final = MESSAGE_BYTES_MAX
#: Body size of the first, unmeasured message, bytes; the first send opens the connection.
FIRST_SIZE: Final = 16
#: The time zone of RocketMQ's tlog lines.
_TLOG_ZONE: Final = timezone(timedelta(hours=8))


def _average_text(average: float | None) -> str:
    return "NaN" if average is None else f"{average:.2f}"


_SENT = Table(
    "%-32s  %-4s  %-20s    %s",
    [
        Column("brokerName", "#Broker Name"),
        Column("queueId", "#QID"),
        Column("sendStatus", "#Send Result"),
        Column("msgId", "#MsgId"),
    ],
)

_TIMES = Table(
    "%-32s  %-4s  %-20s    %s",
    [
        Column("brokerName", "#Broker Name"),
        Column("queueId", "#QID"),
        Column("success", "#Send Result", lambda success: str(success).lower()),
        Column("rt", "#RT"),
    ],
)

_CLUSTERS = Table(
    "%-24s  %-24s  %-8s  %-16s  %-16s",
    [
        Column("clusterName", "#Cluster Name"),
        Column("brokerName", "#Broker Name"),
        Column("rt", "#RT", _average_text),
        Column("successCount", "#successCount"),
        Column("failCount", "#failCount"),
    ],
    header_layout="%-24s  %-24s  %-4s  %-8s  %-8s",
)


def _producer(session: Session, hooks: Sequence[ClientHook] = ()) -> Producer:
    return Producer(GROUP, session.namesrv_addr, hooks, rpc_hooks=session.rpc_hooks)


def _average(elapsed_ms: Sequence[int]) -> float | None:
    """Return the mean without the first send, which opens connections; None for a single send."""
    counted = elapsed_ms[1:]
    return sum(counted) / len(counted) if counted else None


def _elapsed_ms(since_s: float) -> int:
    return round((time.monotonic() - since_s) * 1000)


@command("sendMessage")
@text("-t", "--topic", required=True, help="Topic name")
@text("-p", "--body", required=True, help="UTF-8 string format of the message body")
@text("-k", "--key", help="Message keys")
@text("-c", "--tags", help="Message tags")
@text("-b", "--broker", help="Send message to target broker")
@number("-i", "--qid", help="Send message to target queue")
@flag("-m", "--msgTraceEnable", default=False, help="Message Trace Enable, Default: false")
async def send_message(
    session: Session,
    topic: str,
    body: str,
    key: str | None,
    tags: str | None,
    broker: str | None,
    qid: int | None,
    msg_trace_enable: bool,
) -> None:
    """Sends to a queue of the topic, or with -b and -i to the given broker and queue."""
    if qid is not None and broker is None:
        raise ClientError("Broker name must be set if the queue is chosen!")
    validate_topic(topic)
    hooks: list[ClientHook] = []
    if msg_trace_enable:
        from trace.hooks import TraceHook

        hooks.append(TraceHook())
    message = Message(topic, body.encode(), tags=tags, keys=key or ())
    async with _producer(session, hooks) as producer:
        if broker is not None and qid is not None:
            queue = MessageQueue(topic=topic, broker_name=broker, queue_id=qid)
            result = await producer.send_to(message, queue)
        else:
            result = await producer.send(message)
    record = _sent(result)
    session.out.show(record, _SENT.lines([record]))


def _sent(result: SendResult) -> dict[str, Any]:
    return {
        "brokerName": result.queue.broker_name,
        "queueId": result.queue.queue_id,
        "queueOffset": result.queue_offset,
        "sendStatus": result.status.value,
        "msgId": result.msg_id,
        "offsetMsgId": result.offset_msg_id,
    }


@command("checkMsgSendRT")
@text("-t", "--topic", required=True, help="topic name")
@number("-a", "--amount", low=1, high=AMOUNT_MAX, default=100, help="message amount | default 100")
@number("-s", "--size", low=1, high=SIZE_MAX, default=128, help="message size | default 128 Byte")
async def check_msg_send_rt(session: Session, topic: str, amount: int, size: int) -> None:
    """Sends to the queues of a topic in round-robin order and prints the time of each send."""
    body = b"a" * size
    records: list[dict[str, Any]] = []
    session.out.show_text(_TIMES.header())
    async with _producer(session) as producer:
        queues = await producer.queues(topic)
        if not queues:
            raise NotFound(f"The topic {topic} has no writable queue.")
        for index in range(amount):
            queue = queues[index % len(queues)]
            began_s = time.monotonic()
            try:
                await producer.send_to(Message(topic, body), queue)
                success = True
            except GantryError as error:
                session.failed(error)
                success = False
            record = {"brokerName": queue.broker_name, "queueId": queue.queue_id}
            records.append(record | {"success": success, "rt": _elapsed_ms(began_s)})
            session.out.show_text(_TIMES.row(records[-1]))
    average = _average([record["rt"] for record in records])
    document = {"sends": records, "averageRt": average}
    session.out.show(document, [f"Avg RT: {_average_text(average)}"])


@command("sendMsgStatus")
@text("-b", "--brokerName", required=True, help="Broker Name")
@number("-s", "--messageSize", low=1, high=SIZE_MAX, default=128, help="Message Size, Default: 128")
@number("-c", "--count", high=AMOUNT_MAX, default=50, help="send message count, Default: 50")
async def send_msg_status(
    session: Session, broker_name: str, message_size: int, count: int
) -> None:
    """Sends to the topic named after the broker. JSON output is one document for each message."""
    async with _producer(session) as producer:
        await producer.send(Message(broker_name, _hello_body(FIRST_SIZE)))
        for _ in range(count):
            began_s = time.monotonic()
            result = await producer.send(Message(broker_name, _hello_body(message_size)))
            elapsed_ms = _elapsed_ms(began_s)
            line = f"rt={elapsed_ms}ms, SendResult={send_result_text(result)}"
            session.out.show(_sent(result) | {"rt": elapsed_ms}, [line])


def _hello_body(size: int) -> bytes:
    """Return a body of whole words like RocketMQ's, at least `size` bytes long."""
    word = b"hello jodie"
    return word * -(-size // len(word))


@command("clusterRT")
@number("-a", "--amount", low=1, high=AMOUNT_MAX, default=100, help="message amount | default 100")
@number("-s", "--size", low=1, high=SIZE_MAX, default=128, help="message size | default 128 Byte")
@text("-c", "--cluster", help="cluster name | default display all cluster")
@flag("-p", "--print log", "--printLog", default=False, help="print as tlog | default false")
@text(
    "-m",
    "--machine room",
    "--machineRoom",
    default="noname",
    help="machine room name | default noname",
)
@number("-i", "--interval", high=86_400, default=10, help="print interval | default 10 seconds")
@rounds()
async def cluster_rt(
    session: Session,
    amount: int,
    size: int,
    cluster: str | None,
    print_log: bool,
    machine_room: str,
    interval: int,
    rounds: int,
) -> None:
    """Sends, in rounds until Ctrl-C, to the topics named after the brokers.

    JSON output is one document for each broker and round.
    """
    members = (await session.admin.cluster_info()).cluster_addr_table
    if cluster is not None and cluster not in members:
        raise NotFound(NO_SUCH_CLUSTER.format(cluster))
    if not print_log:
        session.out.show_text(_CLUSTERS.header())
    async with _producer(session) as producer:
        async for _ in poll(interval, rounds):
            for name in [cluster] if cluster else sorted(members):
                for broker in sorted(members[name]):
                    times = await _time_sends(producer, broker, amount, b"a" * size)
                    record = {"clusterName": name, "brokerName": broker} | times
                    line = _tlog(record, machine_room) if print_log else _CLUSTERS.row(record)
                    session.out.show(record, [line])


async def _time_sends(producer: Producer, topic: str, amount: int, body: bytes) -> dict[str, Any]:
    elapsed, failures = [], 0
    for _ in range(amount):
        began_s = time.monotonic()
        try:
            await producer.send(Message(topic, body))
        except GantryError:
            failures += 1
        elapsed.append(_elapsed_ms(began_s))
    return {
        "rt": _average(elapsed),
        "successCount": amount - failures,
        "failCount": failures,
    }


def _tlog(record: dict[str, Any], machine_room: str) -> str:
    now = datetime.now(_TLOG_ZONE).strftime("%Y-%m-%d %H:%M:%S")
    rt = "NaN" if record["rt"] is None else f"{record['rt']:.0f}"
    return f"{now}|{machine_room}|{record['clusterName']}|{record['brokerName']}|{rt}"
