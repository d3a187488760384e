"""Sending back messages after a failed listener call.

Compatible with RocketMQ's DefaultMQPushConsumerImpl.sendMessageBack: the client requests a later
delivery from the message's broker (36); after a failure the client sends a copy to the group's
retry topic; after a second failure the caller retries the message in the client.
"""

import logging
from typing import Final

from core_broker.client.identity import new_uniq_key
from core_broker.client.instance import ClientInstance
from core_broker.client.namespaces import with_namespace
from core_broker.client.sender import Sender
from core_broker.client.sending import prepare
from core_broker.errors import GantryError
from core_broker.message.model import Message, MessageExt
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_TRANSACTION_PREPARED,
)
from core_broker.message.topics import retry_topic
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import ConsumerSendMsgBackRequestHeader

log = logging.getLogger(__name__)

SEND_BACK_TIMEOUT_MS: Final = 5000
FIRST_RETRY_DELAY_LEVEL: Final = 3
BROKER_DECIDES_DELAY: Final = 0


class SendBack:
    """Sends failed messages of one group back to the brokers."""

    def __init__(
        self,
        instance: ClientInstance,
        sender: Sender,
        group: str,
        max_reconsume_times: int,
        namespace: str = "",
    ) -> None:
        self._instance = instance
        self._sender = sender
        self._group = group
        self._max_reconsume_times = max_reconsume_times
        self._namespace = namespace

    async def send_back(self, message: MessageExt, delay_level: int = BROKER_DECIDES_DELAY) -> bool:
        """Send a message back; False when no broker stored the message for a retry."""
        try:
            await self._request_retry(message, delay_level)
        except GantryError as error:
            log.warning("%s could not be sent back, sending a copy: %s", message.msg_id, error)
        else:
            return True
        return await self._send(self._copy(message))

    async def to_dead_letters(self, message: MessageExt, _delay_level: int = 0) -> bool:
        """Move a message of an orderly listener to the dead-letter queue; False after a failure.

        The retries happened in the client, so the stored message has no retry count. The client
        sends a copy with the count to the retry topic; because the count exceeds the group's
        maximum, the broker moves the copy to the dead-letter queue.
        """
        copy = self._copy(message)
        copy.properties[PROPERTY_RECONSUME_TIME] = str(message.reconsume_times)
        del copy.properties[PROPERTY_DELAY_TIME_LEVEL]
        return await self._send(copy)

    def _copy(self, message: MessageExt) -> Message:
        copy = retry_copy(message, self._group, self._max_reconsume_times)
        origin = copy.properties[PROPERTY_RETRY_TOPIC]
        copy.properties[PROPERTY_RETRY_TOPIC] = with_namespace(self._namespace, origin)
        return copy

    async def _send(self, copy: Message) -> bool:
        try:
            await self._sender.send(prepare(copy, new_uniq_key()), SEND_BACK_TIMEOUT_MS)
        except GantryError as error:
            msg_id = copy.properties[PROPERTY_ORIGIN_MESSAGE_ID]
            log.warning("%s could not be sent to the retry topic: %s", msg_id, error)
            return False
        return True

    async def _request_retry(self, message: MessageExt, delay_level: int) -> None:
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.offset_physical,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.msg_id,
            origin_topic=with_namespace(self._namespace, message.topic),
            max_reconsume_times=self._max_reconsume_times,
        )
        addr = self._instance.routes.addr(message.broker_name or "")
        code = RequestCode.CONSUMER_SEND_MSG_BACK
        await self._instance.ask(addr, code, header, timeout_ms=SEND_BACK_TIMEOUT_MS)


def retry_copy(message: MessageExt, group: str, max_reconsume_times: int) -> Message:
    """A copy of the message for the retry topic, with the original unique key."""
    copy = Message(retry_topic(group), message.body, flag=message.flag)
    copy.properties.update(message.properties)
    copy.properties.pop(PROPERTY_TRANSACTION_PREPARED, None)
    copy.properties.setdefault(PROPERTY_RETRY_TOPIC, message.topic)
    copy.properties.setdefault(PROPERTY_ORIGIN_MESSAGE_ID, message.msg_id)
    copy.properties[PROPERTY_RECONSUME_TIME] = str(message.reconsume_times + 1)
    copy.properties[PROPERTY_MAX_RECONSUME_TIMES] = str(max_reconsume_times)
    level = FIRST_RETRY_DELAY_LEVEL + message.reconsume_times
    copy.properties[PROPERTY_DELAY_TIME_LEVEL] = str(level)
    return copy
