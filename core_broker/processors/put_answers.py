"""Answers to sends: response code, remark and message ids.

Compatible with RocketMQ's SendMessageProcessor.handlePutMessageResult.
"""

from functools import cache

from core_broker.config import BrokerConfig
from core_broker.errors import RequestRefused
from core_broker.message.ids import offset_msg_id
from core_broker.message.model import Host
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.store import PutStatus


def refused_answer(config: BrokerConfig, refusal: RequestRefused) -> RemotingCommand:
    """A refusal with region and trace switch, by which clients decide whether to write traces."""
    fields = {"MSG_REGION": config.region_id, "TRACE_ON": "true" if config.trace_on else "false"}
    return RemotingCommand.response(refusal.code, refusal.remark, fields)


def unconfirmed_answer(
    config: BrokerConfig, stored: RemotingCommand, code: ResponseCode, is_writable: bool
) -> RemotingCommand:
    """The answer to a send whose wait for disk or slaves ended with another code than SUCCESS.

    After a failed write or flush the store is read-only and its last messages may be lost: the
    answer is a refusal. Otherwise the message is stored, and only its flush or its copy is late:
    FLUSH_DISK_TIMEOUT, SLAVE_NOT_AVAILABLE or FLUSH_SLAVE_TIMEOUT, which clients treat as a
    success with a status. A DLedger group refuses what its majority does not have in time, with the
    code of RocketMQ 4.9, by which clients send again.
    """
    if code == ResponseCode.SERVICE_NOT_AVAILABLE or not is_writable:
        return refused_answer(config, put_refusal(config, PutStatus.SERVICE_NOT_AVAILABLE))
    if config.enable_d_leger_commit_log and code == ResponseCode.FLUSH_SLAVE_TIMEOUT:
        # No majority in time. The message may be committed later; clients send it again.
        remark = "[PC_SYNCHRONIZED]broker busy, start flow control for a while"
        return refused_answer(config, RequestRefused(ResponseCode.SYSTEM_ERROR, remark))
    stored.code = code
    return stored


def stored_answer(
    config: BrokerConfig, msg_id: str, queue_id: int, offset_logical: int
) -> RemotingCommand:
    """The answer to a stored message, or to a batch with all its ids and its first offset."""
    fields = {
        "msgId": msg_id,
        "queueId": str(queue_id),
        "queueOffset": str(offset_logical),
        "MSG_REGION": config.region_id,
        "TRACE_ON": "true" if config.trace_on else "false",
    }
    return RemotingCommand.response(0, None, fields)


def message_id(host: Host, offset_physical: int) -> str:
    """The offset id of a message stored by this broker."""
    return f"{_id_prefix(host)}{offset_physical:016X}"


@cache
def _id_prefix(host: Host) -> str:
    return offset_msg_id(*host, 0)[:-16]


def put_refusal(config: BrokerConfig, status: PutStatus) -> RequestRefused:
    """The refusal for a message that the store did not accept."""
    match status:
        case PutStatus.MESSAGE_ILLEGAL | PutStatus.PROPERTIES_SIZE_EXCEEDED:
            return RequestRefused(
                ResponseCode.MESSAGE_ILLEGAL,
                "the message is illegal, maybe msg body or properties length not matched. "
                f"msg body length limit {config.max_message_size}B, "
                "msg properties length limit 32KB.",
            )
        case PutStatus.SERVICE_NOT_AVAILABLE:
            return RequestRefused(
                ResponseCode.SERVICE_NOT_AVAILABLE,
                "service not available now. It may be caused by one of the following reasons: "
                "the broker's disk is full, messages are put to the slave, message store has been "
                "shut down, etc.",
            )
        case PutStatus.OS_PAGE_CACHE_BUSY:
            return RequestRefused(
                ResponseCode.SYSTEM_BUSY,
                "[PC_SYNCHRONIZED]broker busy, start flow control for a while",
            )
        case _:
            return RequestRefused(ResponseCode.SYSTEM_ERROR, status.value)
