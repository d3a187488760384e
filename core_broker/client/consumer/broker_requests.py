"""Handlers of the requests from brokers to a consumer: codes 40, 220, 221, 307 and 309.

Compatible with RocketMQ's ClientRemotingProcessor.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from core_broker.client.consumer.listening import ListenerOutcome, ReturnType, for_listener
from core_broker.client.consumer.offset_stores import OffsetStore
from core_broker.errors import ProtocolError
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_record
from core_broker.remoting.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    GetConsumerStatusBody,
    MessageQueue,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    NotifyConsumerIdsChangedRequestHeader,
    ResetOffsetRequestHeader,
)

#: Maximum concurrent direct consumptions (code 309).
DIRECT_CALLS_MAX: Final = 16
STACK_CHARS_MAX: Final = 256 * 1024

_RESULTS: Final = {
    ReturnType.SUCCESS: "CR_SUCCESS",
    ReturnType.FAILED: "CR_LATER",
    ReturnType.RETURN_NULL: "CR_RETURN_NULL",
    ReturnType.EXCEPTION: "CR_THROW_EXCEPTION",
    ReturnType.TIME_OUT: "CR_THROW_EXCEPTION",
}


Call = Callable[[list[MessageExt]], Awaitable[ListenerOutcome]]


class BrokerRequests:
    """The dispatcher for the connections of one consumer."""

    def __init__(
        self,
        group: str,
        *,
        rebalance: Callable[[], None],
        reset: Callable[[Mapping[MessageQueue, int]], None],
        queues: Callable[[], list[MessageQueue]],
        offsets: OffsetStore,
        running_info: Callable[[], ConsumerRunningInfo],
        call: Call | None,
        is_orderly: bool = False,
        namespace: str = "",
    ) -> None:
        self._group = group
        self._rebalance = rebalance
        self._reset = reset
        self._queues = queues
        self._offsets = offsets
        self._running_info = running_info
        self._call = call
        self._is_orderly = is_orderly
        self._namespace = namespace
        self._direct: set[asyncio.Task[None]] = set()

    def dispatch(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        match request.code:
            case RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
                return self._ids_changed(request)
            case RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
                return self._reset_offset(request)
            case RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT:
                return self._status(request)
            case RequestCode.GET_CONSUMER_RUNNING_INFO:
                return self._info(request)
            case RequestCode.CONSUME_MESSAGE_DIRECTLY:
                return self._consume_directly(connection, request)
        return RemotingCommand.response(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported"
        )

    async def stop(self) -> None:
        for task in self._direct:
            task.cancel()
        await asyncio.gather(*self._direct, return_exceptions=True)

    def _ids_changed(self, request: RemotingCommand) -> RemotingCommand | None:
        if request.header(NotifyConsumerIdsChangedRequestHeader).consumer_group == self._group:
            self._rebalance()
        return _acknowledgement(request)

    def _reset_offset(self, request: RemotingCommand) -> RemotingCommand | None:
        header = request.header(ResetOffsetRequestHeader)
        if header.group == self._group:
            offsets = _read_offsets(request.body)
            self._reset({q: offset for q, offset in offsets.items() if q.topic == header.topic})
            self._rebalance()
        return _acknowledgement(request)

    def _status(self, request: RemotingCommand) -> RemotingCommand:
        header = request.header(GetConsumerStatusRequestHeader)
        if header.group != self._group:
            return self._wrong_group(header.group)
        table = {
            queue: offset
            for queue in self._queues()
            if queue.topic == header.topic and (offset := self._offsets.cached(queue)) is not None
        }
        return RemotingCommand.response(
            body=encode_body(GetConsumerStatusBody(message_queue_table=table))
        )

    def _info(self, request: RemotingCommand) -> RemotingCommand:
        header = request.header(GetConsumerRunningInfoRequestHeader)
        if header.consumer_group != self._group:
            return self._wrong_group(header.consumer_group)
        info = self._running_info()
        if header.jstack_enable:
            info.jstack = stacks()
        return RemotingCommand.response(body=encode_body(info))

    def _consume_directly(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand | None:
        header = request.header(ConsumeMessageDirectlyResultRequestHeader)
        call = self._call
        if header.consumer_group != self._group or call is None:
            return self._wrong_group(header.consumer_group)
        if len(self._direct) >= DIRECT_CALLS_MAX:
            remark = f"{DIRECT_CALLS_MAX} direct consumptions are running already"
            return RemotingCommand.response(ResponseCode.SYSTEM_BUSY, remark)
        message = decode_record(request.body)
        message.broker_name = header.broker_name

        async def consume() -> None:
            outcome = await call([for_listener(message, self._group, self._namespace)])
            result = _result(outcome, is_orderly=self._is_orderly)
            connection.answer(request, RemotingCommand.response(body=encode_body(result)))

        self._track(consume())
        return None

    def _track(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"consumer {self._group} directly")
        self._direct.add(task)
        task.add_done_callback(self._direct.discard)

    def _wrong_group(self, group: str) -> RemotingCommand:
        remark = f"The Consumer Group <{group}> not exist in this consumer"
        return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, remark)


def stacks() -> str:
    """The stacks of all tasks of the event loop, asyncio's form of a thread dump."""
    parts = []
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        frames = [traceback.format_stack(frame)[-1] for frame in reversed(task.get_stack())]
        parts.append(f"{task.get_name()}\n{''.join(frames)}")
    return "\n".join(parts)[:STACK_CHARS_MAX]


def _acknowledgement(request: RemotingCommand) -> RemotingCommand | None:
    return None if request.is_oneway else RemotingCommand.response()


def _read_offsets(body: bytes) -> dict[MessageQueue, int]:
    """Read both formats: the table for Java clients, and the list for C++ clients."""
    try:
        return decode_body(ResetOffsetBody, body).offset_table
    except ProtocolError:
        table = decode_body(ResetOffsetBodyForC, body).offset_table
    return {
        MessageQueue(topic=it.topic, broker_name=it.broker_name, queue_id=it.queue_id): it.offset
        for it in table
    }


def _result(outcome: ListenerOutcome, *, is_orderly: bool) -> ConsumeMessageDirectlyResult:
    return ConsumeMessageDirectlyResult(
        order=is_orderly,
        consume_result=_RESULTS[outcome.return_type],
        remark=f"{type(outcome.error).__name__}: {outcome.error}" if outcome.error else None,
        spent_time_mills=outcome.elapsed_ms,
    )
