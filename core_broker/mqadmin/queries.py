"""Message queries: by id, key, unique key or offset; consume-queue units; decoding of ids."""

from core_broker.client import Producer
from core_broker.client.admin import AdminClient
from core_broker.client.identity import now_ms
from core_broker.errors import ClientError, GantryError, ProtocolError
from core_broker.message.ids import parse_offset_msg_id, parse_uniq_key
from core_broker.message.model import Message, MessageExt
from core_broker.message.properties import TIMER_PROPERTIES
from core_broker.mqadmin.command import LONG_MAX, command, flag, number, switch, text
from core_broker.mqadmin.java_texts import directly_text, host_text, send_result_text, unit_text
from core_broker.mqadmin.lookup import topic_addrs
from core_broker.mqadmin.message_views import message_document, message_lines, unpacked, write_body
from core_broker.mqadmin.output import Column, Table, pretty
from core_broker.mqadmin.session import NotFound, Session
from core_broker.mqadmin.times import date_time_ms
from core_broker.mqadmin.tracks import MessageTrack, message_tracks

RESEND_GROUP = "ReSendMsgById"
#: Results requested from each broker, messages.
FOUND_BY_KEY_MAX = 64
FOUND_BY_UNIQUE_KEY_MAX = 32
#: Upper bound of queryCq's --count, units.
UNITS_MAX = 10_000
_RULE = "======================================"

_BY_KEY = Table(
    "%-50s %4s %40s",
    [
        Column("msgId", "#Message ID"),
        Column("queueId", "#QID"),
        Column("queueOffset", "#Offset"),
    ],
)


@command("queryMsgById")
@text("-i", "--msgId", required=True, help="Message Id; several are joined by commas")
@text("-g", "--consumerGroup", help="consumer group name")
@text("-d", "--clientId", help="The consumer's client id")
@flag("-s", "--sendMessage", default=None, help="resend message")
@text("-u", "--unitName", help="unit name")
async def query_msg_by_id(
    session: Session,
    msg_id: str,
    consumer_group: str | None,
    client_id: str | None,
    send_message: bool | None,
    unit_name: str | None,
) -> None:
    """Takes offset message ids (OffsetID), which encode broker address and commit-log offset.

    With -g and -d a consumer consumes the message again; -s true resends the message. -u has no
    effect and exists for compatibility.
    """
    for offset_msg_id in filter(None, map(str.strip, msg_id.split(","))):
        addr, message = await _view(session.admin, offset_msg_id)
        if consumer_group and client_id:
            await _consume_directly(session, addr, consumer_group, client_id, message)
        elif send_message:
            await _resend(session, message)
        elif send_message is None:
            await _show(session, message, offset_id=True)


async def _view(admin: AdminClient, msg_id: str) -> tuple[str, MessageExt]:
    ip, port, offset = parse_offset_msg_id(msg_id)
    addr = host_text((ip, port))
    try:
        return addr, await admin.view_message(addr, offset)
    except ProtocolError as error:
        raise NotFound(f"{addr} has no message at {offset}: {error}.") from None


async def _consume_directly(
    session: Session, addr: str, group: str, client_id: str, message: MessageExt
) -> None:
    result = await session.admin.consume_message_directly(
        addr, group, client_id, message.offset_msg_id, message.topic
    )
    session.out.show(result, [directly_text(result)])


async def _resend(session: Session, message: MessageExt) -> None:
    line = f"prepare resend msg. originalMsgId={message.offset_msg_id}"
    async with Producer(
        RESEND_GROUP, session.namesrv_addr, rpc_hooks=session.rpc_hooks
    ) as producer:
        result = await producer.send(copy_to_resend(message))
    document = {
        "originalMsgId": message.offset_msg_id,
        "msgId": result.msg_id,
        "offsetMsgId": result.offset_msg_id,
        "sendStatus": result.status,
    }
    session.out.show(document, [line, send_result_text(result)])


def copy_to_resend(message: MessageExt) -> Message:
    """Return the message without the timer properties of RocketMQ 5, which brokers refuse."""
    properties = {
        name: value for name, value in message.properties.items() if name not in TIMER_PROPERTIES
    }
    return Message(message.topic, unpacked(message), flag=message.flag, properties=properties)


async def _show(session: Session, message: MessageExt, *, offset_id: bool, number: int = 0) -> None:
    """Print the message, and the consumption state of each group."""
    tracks: list[MessageTrack] | None = None
    try:
        tracks = await message_tracks(session.admin, message)
    except GantryError as error:
        session.warn(f"The consumption state of the message is unknown: {error}")
    if session.out.as_json:
        records = None if tracks is None else [track.record() for track in tracks]
        session.out.show_json(message_document(message) | {"tracks": records})
        return
    path = await write_body(message, number)
    lines = list(message_lines(message, path, offset_id=offset_id))
    if tracks is not None:
        lines += ["", "", *map(str, tracks)] if tracks else ["", "", "WARN: No Consumer"]
    session.out.show(None, lines)


@command("queryMsgByKey")
@text("-t", "--topic", required=True, help="topic name")
@text("-k", "--msgKey", required=True, help="Message Key")
async def query_msg_by_key(session: Session, topic: str, msg_key: str) -> None:
    """Lists at most 64 messages of each broker."""
    messages = []
    for name, addr in (await topic_addrs(session.admin, topic)).items():
        for message in await session.admin.query_message(addr, topic, msg_key, FOUND_BY_KEY_MAX):
            message.broker_name = name
            messages.append(message)
    records = [message_document(message, with_body=False) for message in messages]
    session.out.show({"messages": records}, _BY_KEY.lines(records))


@command("queryMsgByUniqueKey")
@text("-t", "--topic", required=True, help="The topic of msg")
@text("-i", "--msgId", required=True, help="Message Id")
@text("-g", "--consumerGroup", help="consumer group name")
@text("-d", "--clientId", help="The consumer's client id")
@switch("-a", "--showAll", help="Print all message, the limit is 32")
async def query_msg_by_unique_key(
    session: Session,
    topic: str,
    msg_id: str,
    consumer_group: str | None,
    client_id: str | None,
    show_all: bool,
) -> None:
    """Finds messages by the unique key set by the producer: the oldest message, or all with -a."""
    messages: list[MessageExt] = []
    for addr in (await topic_addrs(session.admin, topic)).values():
        messages += await session.admin.query_message(
            addr, topic, msg_id, FOUND_BY_UNIQUE_KEY_MAX, unique=True
        )
    if not messages:
        raise NotFound(f"No message of {topic} has the id {msg_id}.")
    messages.sort(key=lambda message: message.store_timestamp)
    if consumer_group and client_id:
        addr = host_text(messages[0].store_host)
        await _consume_directly(session, addr, consumer_group, client_id, messages[0])
        return
    for index, message in enumerate(messages if show_all else messages[:1]):
        await _show(session, message, offset_id=False, number=index)


@command("queryMsgByOffset")
@text("-t", "--topic", required=True, help="topic name")
@text("-b", "--brokerName", required=True, help="Broker Name")
@number("-i", "--queueId", required=True, help="Queue Id")
@number("-o", "--offset", high=LONG_MAX, required=True, help="Queue Offset")
async def query_msg_by_offset(
    session: Session, topic: str, broker_name: str, queue_id: int, offset: int
) -> None:
    """Prints the message at one offset of one queue."""
    addr = (await topic_addrs(session.admin, topic)).get(broker_name)
    if addr is None:
        raise NotFound(f"The topic {topic} has no queues on a broker {broker_name}.")
    pull = await session.admin.pull(addr, topic, queue_id, offset, 1)
    if not pull.messages or pull.messages[0].queue_offset != offset:
        raise NotFound(
            f"No message at offset {offset}: queue {queue_id} of {topic} on {broker_name} holds "
            f"offsets {pull.min_offset} to {pull.max_offset}."
        )
    (message,) = pull.messages[:1]
    message.broker_name = broker_name
    # Java's client adds both properties to pulled messages.
    message.properties |= {"MIN_OFFSET": str(pull.min_offset), "MAX_OFFSET": str(pull.max_offset)}
    await _show(session, message, offset_id=True)


@command("queryCq")
@text("-t", "--topic", required=True, help="topic name")
@number("-q", "--queue", required=True, help="queue num, ie. 1")
@number("-i", "--index", high=LONG_MAX, required=True, help="start queue index.")
@number("-c", "--count", low=1, high=UNITS_MAX, default=10, help="how many.")
@text("-b", "--broker", help="broker addr.")
@text("-g", "--consumer", help="consumer group.")
async def query_cq(
    session: Session,
    topic: str,
    queue: int,
    index: int,
    count: int,
    broker: str | None,
    consumer: str | None,
) -> None:
    """Prints units of a consume queue; with -g also the result of the group's filter per unit."""
    addr = broker or next(iter((await topic_addrs(session.admin, topic)).values()), None)
    if addr is None:
        raise NotFound(f"No reachable broker has the topic {topic}.")
    body = await session.admin.consume_queue(addr, topic, queue, index, count, consumer)
    lines = []
    if body.subscription_data is not None:
        lines += ["Subscription data: ", pretty(body.subscription_data), _RULE]
    if body.filter_data is not None:
        lines += ["Filter data: ", body.filter_data, _RULE]
    lines += ["Queue data: ", f"max: {body.max_queue_index}, min: {body.min_queue_index}", _RULE]
    for unit_index, unit in enumerate(body.queue_data, index):
        lines += [f"idx: {unit_index}", unit_text(unit), _RULE]
    session.out.show(body, lines)


@command("DecodeMessageId")
@text("-i", "--messageId", required=True, help="unique message ID")
async def decode_message_id(session: Session, message_id: str) -> None:
    """Prints IP address and time encoded in a unique key, without a request to a server."""
    try:
        key = parse_uniq_key(message_id, now_ms())
    except (OverflowError, ValueError) as error:
        raise ClientError(f"{message_id!r} is not a unique key: {error}.") from None
    document = {"ip": key.ip, "pid": key.pid, "createdTimestamp": key.created_ms}
    date = date_time_ms(key.created_ms).replace(" ", "#").replace(",", ":")
    session.out.show(document, [f"ip={key.ip}", f"date={date}"])
