"""printMsg, printMsgByQueue and consumeMessage: print messages of queues, commit no offset."""

import codecs
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import click

from core_broker.allocation import subscribe_queues
from core_broker.client.admin import AdminClient
from core_broker.client.identity import now_ms
from core_broker.client.results import PullResult, PullStatus
from core_broker.errors import ClientError
from core_broker.message.model import MessageExt
from core_broker.message.topics import TOOLS_CONSUMER_GROUP
from core_broker.mqadmin.command import LONG_MAX, command, flag, moment, number, text
from core_broker.mqadmin.java_texts import queue_text
from core_broker.mqadmin.lookup import addrs_of_route
from core_broker.mqadmin.message_views import message_document, printed_line
from core_broker.mqadmin.session import NotFound, Session
from core_broker.remoting.bodies import MessageQueue

BEGIN_HELP: Final = "Begin timestamp[currentTimeMillis|yyyy-MM-dd#HH:mm:ss:SSS]"
END_HELP: Final = "End timestamp[currentTimeMillis|yyyy-MM-dd#HH:mm:ss:SSS]"
TAGS_HELP: Final = "Subscribe Expression(eg: TagA || TagB)"
CHARSET_HELP: Final = "CharsetName(eg: UTF-8,GBK)"
#: Batch size of one pull, messages.
PULL_COUNT: Final = 32
CONSUME_COUNT_DEFAULT: Final = 128
_RULE: Final = "-" * 56


def _charset(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise click.BadParameter(f"{name!r} is not a charset") from None


@dataclass(frozen=True, slots=True)
class Slice:
    """An offset range of one queue, from `begin` up to but not including `end`."""

    queue: MessageQueue
    addr: str
    begin: int
    end: int

    async def pulls(
        self, admin: AdminClient, tags: str, group: str = TOOLS_CONSUMER_GROUP
    ) -> AsyncIterator[PullResult]:
        """Pull the range in batches; messages from `end` on are removed from the last batch."""
        offset = self.begin
        while offset < self.end:
            count = min(PULL_COUNT, self.end - offset)
            pull = await admin.pull(
                self.addr, self.queue.topic, self.queue.queue_id, offset, count, tags, group
            )
            pull.messages[:] = [
                self._named(message) for message in pull.messages if message.queue_offset < self.end
            ]
            yield pull
            if pull.status in {PullStatus.NO_NEW_MSG, PullStatus.OFFSET_ILLEGAL}:
                return
            if pull.next_offset <= offset:
                return  # a next offset without progress would loop forever
            offset = pull.next_offset

    def _named(self, message: MessageExt) -> MessageExt:
        message.broker_name = self.queue.broker_name
        return message


async def _slice(
    admin: AdminClient, queue: MessageQueue, addr: str, begin_ms: int | None, end_ms: int | None
) -> Slice:
    target = (addr, queue.topic, queue.queue_id)
    if begin_ms is None:
        begin = await admin.min_offset(*target)
    else:
        begin = await admin.search_offset(*target, begin_ms)
    if end_ms is None:
        end = await admin.max_offset(*target)
    else:
        end = await admin.search_offset(*target, end_ms)
    return Slice(queue, addr, begin, end)


async def _readable(admin: AdminClient, topic: str) -> dict[MessageQueue, str]:
    """Return the readable queues of a topic, sorted, with the address of each broker."""
    route = await admin.topic_route(topic)
    addrs = addrs_of_route(route)
    queues = sorted(subscribe_queues(topic, route))
    return {queue: addrs[queue.broker_name] for queue in queues if queue.broker_name in addrs}


async def _only(
    admin: AdminClient, topic: str, broker_name: str, queue_id: int
) -> dict[MessageQueue, str]:
    addr = addrs_of_route(await admin.topic_route(topic)).get(broker_name)
    if addr is None:
        raise NotFound(f"The topic {topic} has no queues on a broker {broker_name}.")
    return {MessageQueue(topic=topic, broker_name=broker_name, queue_id=queue_id): addr}


@command("printMsg")
@text("-t", "--topic", required=True, help="topic name")
@text("-c", "--charsetName", default="UTF-8", callback=_charset, help=CHARSET_HELP)
@text("-s", "--subExpression", default="*", help=TAGS_HELP)
@moment("-b", "--beginTimestamp", help=BEGIN_HELP)
@moment("-e", "--endTimestamp", help=END_HELP)
@flag("-d", "--printBody", default=True, help="print body")
async def print_msg(
    session: Session,
    *,
    topic: str,
    charset_name: str,
    sub_expression: str,
    begin_timestamp: int | None,
    end_timestamp: int | None,
    print_body: bool,
) -> None:
    """Prints all messages of a topic, queue by queue. JSON output is one document per message."""
    out, admin = session.out, session.admin
    for queue, addr in (await _readable(admin, topic)).items():
        part = await _slice(admin, queue, addr, begin_timestamp, end_timestamp)
        out.show_text(f"minOffset={part.begin}, maxOffset={part.end}, {queue_text(queue)}")
        async for pull in part.pulls(admin, sub_expression):
            for message in pull.messages:
                _print(session, message, charset_name, with_body=print_body)
            _say_status(session, queue, pull)
        out.show_text(_RULE)


@command("printMsgByQueue")
@text("-t", "--topic", required=True, help="topic name")
@text("-a", "--brokerName", required=True, help="broker name")
@number("-i", "--queueId", required=True, help="queue id")
@text("-c", "--charsetName", default="UTF-8", callback=_charset, help=CHARSET_HELP)
@text("-s", "--subExpression", default="*", help=TAGS_HELP)
@moment("-b", "--beginTimestamp", help=BEGIN_HELP)
@moment("-e", "--endTimestamp", help=END_HELP)
@flag("-p", "--print msg", "--printMsg", default=False, help="print msg. eg: true | false(default)")
@flag("-d", "--printBody", default=False, help="print body. eg: true | false(default)")
@flag("-f", "--calculate", default=False, help="calculate by tag. eg: true | false(default)")
async def print_msg_by_queue(
    session: Session,
    *,
    topic: str,
    broker_name: str,
    queue_id: int,
    charset_name: str,
    sub_expression: str,
    begin_timestamp: int | None,
    end_timestamp: int | None,
    print_msg: bool,
    print_body: bool,
    calculate: bool,
) -> None:
    """Prints the messages of one queue with -p true, and the message count per tag with -f true.

    JSON output is one document for each message, then one document with the tag counts.
    """
    admin = session.admin
    counts: Counter[str] = Counter()
    for queue, addr in (await _only(admin, topic, broker_name, queue_id)).items():
        part = await _slice(admin, queue, addr, begin_timestamp, end_timestamp)
        async for pull in part.pulls(admin, sub_expression):
            counts.update(message.tags for message in pull.messages if message.tags)
            for message in pull.messages if print_msg else ():
                _print(session, message, charset_name, with_body=print_body)
    if calculate:
        lines = [f"Tag: {tag:<30} Count: {count}" for tag, count in counts.most_common()]
        session.out.show({"tags": dict(counts.most_common())}, lines)


@command("consumeMessage")
@text("-t", "--topic", required=True, help="Topic name")
@text("-b", "--brokerName", help="Broker name")
@number("-i", "--queueId", help="Queue Id")
@number("-o", "--offset", high=LONG_MAX, help="Queue offset")
@text("-g", "--consumerGroup", default=TOOLS_CONSUMER_GROUP, help="Consumer group name")
@number(
    "-c",
    "--MessageNumber",
    low=1,
    high=LONG_MAX,
    default=CONSUME_COUNT_DEFAULT,
    help="Number of message to be consumed",
)
@moment("-s", "--beginTimestamp", help=BEGIN_HELP)
@moment("-e", "--endTimestamp", help=END_HELP)
async def consume_message(
    session: Session,
    *,
    topic: str,
    broker_name: str | None,
    queue_id: int | None,
    offset: int | None,
    consumer_group: str,
    message_number: int,
    begin_timestamp: int | None,
    end_timestamp: int | None,
) -> None:
    """Prints the oldest messages of a topic or of one queue, and commits no offset."""
    _check_queue_options(broker_name, queue_id, offset)
    _check_times(begin_timestamp, end_timestamp)
    admin = session.admin
    if broker_name is not None and queue_id is not None:
        queues = await _only(admin, topic, broker_name, queue_id)
    else:
        queues = await _readable(admin, topic)
    left = message_number
    for queue, addr in queues.items():
        part = await _slice(admin, queue, addr, begin_timestamp, end_timestamp)
        begin = max(part.begin, offset or 0)
        if offset is not None and offset > part.end:
            session.out.show_text(f"{queue_text(queue)} no matched msg, offset={offset}")
        part = Slice(queue, addr, begin, min(part.end, begin + left))
        async for pull in part.pulls(admin, "*", consumer_group):
            if pull.messages:
                session.out.show_text("Consume ok")
            for message in pull.messages:
                _print(session, message, "utf-8", with_body=True)
            left -= len(pull.messages)
            _say_status(session, queue, pull)
        if left <= 0:
            return


def _check_queue_options(broker_name: str | None, queue_id: int | None, offset: int | None) -> None:
    if queue_id is not None and broker_name is None:
        raise ClientError("Please set the brokerName before queueId!")
    if offset is not None and queue_id is None:
        raise ClientError("Please set queueId before offset!")


def _check_times(begin_ms: int | None, end_ms: int | None) -> None:
    now = now_ms()
    if begin_ms is not None and begin_ms > now:
        raise ClientError("Please set the beginTimestamp before now!")
    if end_ms is not None and end_ms > now:
        raise ClientError("Please set the endTimestamp before now!")
    if begin_ms is not None and end_ms is not None and begin_ms > end_ms:
        raise ClientError(
            "Please make sure that the beginTimestamp is less than or equal to the endTimestamp"
        )


def _print(session: Session, message: MessageExt, charset: str, *, with_body: bool) -> None:
    document: Any = None
    lines = []
    if session.out.as_json:
        document = message_document(message, with_body=with_body)
    else:
        lines = [printed_line(message, charset, with_body=with_body)]
    session.out.show(document, lines)


def _say_status(session: Session, queue: MessageQueue, pull: PullResult) -> None:
    match pull.status:
        case PullStatus.NO_MATCHED_MSG:
            outcome = "no matched msg"
        case PullStatus.NO_NEW_MSG | PullStatus.OFFSET_ILLEGAL:
            outcome = "print msg finished"
        case _:
            return
    status = f"status={pull.status.value}, offset={pull.next_offset}"
    session.out.show_text(f"{queue_text(queue)} {outcome}. {status}")
