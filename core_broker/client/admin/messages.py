"""Messages: query, view and pull messages, and send a message to a chosen queue of a broker."""

from typing import Final

from core_broker.client.admin.base import AdminBase
from core_broker.client.answers import checked
from core_broker.client.identity import new_uniq_key, now_ms
from core_broker.client.pulling import Pull, decode_pull, read_raw_pull
from core_broker.client.results import PullResult, RawPull, SendResult
from core_broker.client.sending import check_message, prepare, read_send_answer
from core_broker.client.subscription import build_subscription
from core_broker.message.model import Message, MessageExt
from core_broker.message.record import decode_record, decode_records
from core_broker.message.topics import CLIENT_INNER_PRODUCER_GROUP, TOOLS_CONSUMER_GROUP
from core_broker.remoting.bodies import (
    SUBSCRIBE_ALL,
    MessageQueue,
    QueryConsumeQueueResponseBody,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.headers import (
    QueryConsumeQueueRequestHeader,
    QueryMessageRequestHeader,
    ResumeCheckHalfMessageRequestHeader,
    ViewMessageRequestHeader,
)

TIMESTAMP_MAX: Final = 2**63 - 1


class MessageAdmin(AdminBase):
    async def query_message(
        self,
        addr: str,
        topic: str,
        key: str,
        max_num: int = 32,
        begin_ms: int = 0,
        end_ms: int = TIMESTAMP_MAX,
        unique: bool = False,
    ) -> list[MessageExt]:
        """Messages with a key, or with ``unique`` the messages with a unique key, by the index.

        The index holds only hashes of keys, so the client drops messages of different topics and
        keys. Without matches the list is empty.
        """
        header = QueryMessageRequestHeader(
            topic=topic,
            key=key,
            max_num=max_num,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
            unique_key_query=unique,
        )
        answer = await self._invoke(addr, RequestCode.QUERY_MESSAGE, header)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return []
        messages = decode_records(checked(answer, addr).body)
        if unique:
            return [m for m in messages if m.topic == topic and m.msg_id == key]
        return [m for m in messages if m.topic == topic and key in m.keys]

    async def view_message(
        self, addr: str, physical_offset: int, topic: str | None = None
    ) -> MessageExt:
        """The message at an offset of the commit log; needs no read permission on the topic."""
        header = ViewMessageRequestHeader(offset=physical_offset, topic=topic)
        answer = await self._ask(addr, RequestCode.VIEW_MESSAGE_BY_ID, header)
        return decode_record(answer.body)

    async def resume_check_half_message(
        self, addr: str, offset_msg_id: str, topic: str | None = None
    ) -> None:
        """Resume the checks of a half message after the last check. The message is on the topic
        TRANS_CHECK_MAX_TIME_TOPIC, and is named by its offset message id there."""
        header = ResumeCheckHalfMessageRequestHeader(msg_id=offset_msg_id, topic=topic)
        await self._ask(addr, RequestCode.RESUME_CHECK_HALF_MESSAGE, header)

    async def consume_queue(
        self, addr: str, topic: str, queue_id: int, index: int, count: int, group: str | None = None
    ) -> QueryConsumeQueueResponseBody:
        """Units of a consume queue; needs no read permission on the topic."""
        header = QueryConsumeQueueRequestHeader(
            topic=topic, queue_id=queue_id, index=index, count=count, consumer_group=group
        )
        code = RequestCode.QUERY_CONSUME_QUEUE
        return await self._ask_body(QueryConsumeQueueResponseBody, addr, code, header)

    async def pull(
        self,
        addr: str,
        topic: str,
        queue_id: int,
        offset: int,
        count: int,
        subscription: str = SUBSCRIBE_ALL,
        group: str = TOOLS_CONSUMER_GROUP,
        timeout_ms: int | None = None,
    ) -> PullResult:
        """Pull messages without joining a group or committing; does not wait for new messages."""
        raw = await self.pull_raw(
            addr, topic, queue_id, offset, count, subscription, group, timeout_ms
        )
        return decode_pull(raw, "", build_subscription(topic, subscription, version=0))

    async def pull_raw(
        self,
        addr: str,
        topic: str,
        queue_id: int,
        offset: int,
        count: int,
        subscription: str = SUBSCRIBE_ALL,
        group: str = TOOLS_CONSUMER_GROUP,
        timeout_ms: int | None = None,
    ) -> RawPull:
        """Like ``pull``, with an undecoded body: concatenated stored records. The broker filters
        by tag hashes only, so the caller compares the tags again."""
        queue = MessageQueue(topic=topic, broker_name="", queue_id=queue_id)
        command = Pull(queue, group, offset, count, subscription).request()
        self._used = True
        answer = await self._remoting.invoke(addr, command, timeout_ms or self.timeout_ms)
        return read_raw_pull(answer, addr)

    async def send(
        self,
        addr: str,
        message: Message,
        queue_id: int = -1,
        group: str = CLIENT_INNER_PRODUCER_GROUP,
    ) -> SendResult:
        """Send to one broker without a retry; with queue -1 the broker chooses the queue.

        An empty body is allowed, because stored messages may have an empty body."""
        check_message(message, may_be_empty=True)
        outgoing = prepare(message, new_uniq_key())
        queue = MessageQueue(topic=message.topic, broker_name="", queue_id=queue_id)
        command = outgoing.request(queue, group=group, now_ms=now_ms())
        self._used = True
        answer = await self._remoting.invoke(addr, command, self.timeout_ms)
        return read_send_answer(answer, addr, outgoing, queue)
