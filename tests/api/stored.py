"""Messages and dead letters in a real cluster, for tests of pages and REST resources."""

import base64
from collections.abc import Sequence
from typing import Any

from core_broker.client import AdminClient, SendResult
from core_broker.message.ids import parse_offset_msg_id
from core_broker.message.model import Message
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import ConsumerSendMsgBackRequestHeader
from tests.api.traffic import Traffic, poll

#: Delay level -1: the broker moves the message to the dead-letter queue at once.
GIVE_UP = -1

NASTY = '<script>alert("x")</script>&amp;\'"'
#: Message properties with special characters; the console puts property values into URLs.
NASTY_PROPERTIES = dict.fromkeys(
    (NASTY, "UNIQ_KEY", "RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "RESENT_FROM"), NASTY
)
#: Markup that no page may contain unescaped.
RAW = (b"<script>alert", b'alert("x")')


def routed_topic(traffic: Traffic, prefix: str, **settings: int | bool) -> str:
    """A new topic, already registered at the name server."""
    topic = traffic.topic(prefix, **settings)
    wait_for_topic(traffic, topic)
    return topic


def wait_for_topic(traffic: Traffic, topic: str) -> None:
    async def is_known(admin: AdminClient) -> bool:
        return topic in await admin.topic_list()

    poll(lambda: traffic.admin(is_known))


def store(traffic: Traffic, *messages: Message, queue_id: int = 0) -> list[SendResult]:
    """Send messages to one queue, in sequence."""

    async def send(admin: AdminClient) -> list[SendResult]:
        return [await admin.send(traffic.broker_addr, each, queue_id) for each in messages]

    return traffic.admin(send)


def numbered(topic: str, count: int) -> list[Message]:
    return [Message(topic, b"message %d" % number, tags="t") for number in range(count)]


def give_up(traffic: Traffic, group: str, topic: str, sent: Sequence[SendResult]) -> None:
    """Send messages back like a consumer without retries: delay level -1."""

    async def send_back(_admin: AdminClient) -> None:
        client = RemotingClient(name="a consumer that gives up")
        try:
            for each in sent:
                _host, _port, offset = parse_offset_msg_id(each.offset_msg_id)
                header = ConsumerSendMsgBackRequestHeader(
                    offset=offset,
                    group=group,
                    delay_level=GIVE_UP,
                    origin_msg_id=each.msg_id,
                    origin_topic=topic,
                    max_reconsume_times=0,
                )
                request = RemotingCommand.request(RequestCode.CONSUMER_SEND_MSG_BACK, header)
                answer = await client.invoke(traffic.broker_addr, request)
                assert answer.code == 0, answer.remark
        finally:
            await client.close()

    traffic.admin(send_back)


class Dead:
    """Create a group with dead letters of one topic."""

    def __init__(self, traffic: Traffic, count: int = 3) -> None:
        self.traffic = traffic
        self.topic = routed_topic(traffic, "origin")
        self.group = traffic.group("mourner")
        self.add(*numbered(self.topic, count))
        wait_for_topic(traffic, f"%DLQ%{self.group}")

    def add(self, *messages: Message, topic: str = "") -> list[SendResult]:
        sent = store(self.traffic, *messages)
        give_up(self.traffic, self.group, topic or self.topic, sent)
        return sent


def cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def ids(answer: dict[str, Any]) -> list[str]:
    return [each["offset_msg_id"] for each in answer["items"]]
