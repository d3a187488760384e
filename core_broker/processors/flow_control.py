"""Flow control: refusal of requests with SYSTEM_BUSY (2), before any work.

RocketMQ's requests wait in the queues of thread pools. Gantry's requests wait behind the other
requests of their event-loop iteration, in a connection's receive buffer, and behind answers that
the peer does not read. `ConnectionState.arrived` is a lower bound of the waiting time, so a refused
request has certainly waited as long as its remark says.

    [TIMEOUT_CLEAN_QUEUE]  the request waited longer than waitTimeMillsIn…Queue
    [PCBUSY_CLEAN_QUEUE]   a send that was already waiting when a slow write began
    [REJECTREQUEST]        a send that arrived during a slow write
    [OVERLOAD]             too many sends wait for disk or slaves, or too many pulls for messages

A write is slow when it takes longer than osPageCacheBusyTimeOutMills. brokerFastFailureEnable
switches the first two refusals. Codes and remarks are compatible with RocketMQ's BrokerFastFailure,
SendMessageProcessor.rejectRequest and NettyRemotingAbstract.
"""

import time
from collections import Counter
from collections.abc import Callable, Sized

from core_broker.processors.context import BrokerContext
from core_broker.processors.turn import Turn
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import BUSY_REMARK, Connection

REJECTED = "[REJECTREQUEST]system busy, start flow control for a while"
#: Time after a write, seconds, in which the loop still reads requests from during the write.
AFTER_WRITE_S = 0.05

SENDS = frozenset(
    {
        Code.SEND_MESSAGE,
        Code.SEND_MESSAGE_V2,
        Code.SEND_BATCH_MESSAGE,
        Code.CONSUMER_SEND_MSG_BACK,
    }
)
PULLS = frozenset({Code.PULL_MESSAGE, Code.LITE_PULL_MESSAGE})

#: Request codes under flow control; requests with other codes are always handled.
CONTROLLED = SENDS | PULLS | {Code.HEART_BEAT, Code.END_TRANSACTION}


class FlowControl:
    """Decides whether requests with a code in CONTROLLED are handled or refused."""

    def __init__(
        self,
        ctx: BrokerContext,
        turn: Turn,
        held_pulls: Sized,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ctx = ctx
        self._turn = turn
        self._held_pulls = held_pulls
        self._clock = clock
        #: Number of refusals, by the bracketed name in the remark.
        self.refused: Counter[str] = Counter()

    @property
    def holds_too_many(self) -> bool:
        """True when pullThreadPoolQueueCapacity held pulls wait; further pulls are refused."""
        return len(self._held_pulls) >= self._ctx.config.pull_thread_pool_queue_capacity

    def refusal(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """The refusal of a request; None when the request is to be handled."""
        config, code, turn = self._ctx.config, request.code, self._turn
        waited_ms = (self._clock() - connection.state.arrived) * 1000
        if code in SENDS:
            began, ended = turn.last_write
            if (ended - began) * 1000 > config.os_page_cache_busy_time_out_mills and (
                remark := self._slow_write(connection, waited_ms)
            ):
                return self._refuse(remark)
            is_full = turn.waiters >= config.send_thread_pool_queue_capacity
            limit_ms = config.wait_time_mills_in_send_queue
        elif code in PULLS:
            is_full = self.holds_too_many
            limit_ms = config.wait_time_mills_in_pull_queue
        elif code == Code.HEART_BEAT:
            is_full, limit_ms = False, config.wait_time_mills_in_heartbeat_queue
        else:
            is_full, limit_ms = False, config.wait_time_mills_in_transaction_queue
        if is_full:
            return self._refuse(BUSY_REMARK)
        if waited_ms > limit_ms and config.broker_fast_failure_enable:
            return self._refuse(_cleaned("TIMEOUT_CLEAN_QUEUE", waited_ms, connection))
        return None

    def _slow_write(self, connection: Connection, waited_ms: float) -> str | None:
        """The remark for a send refused because of a slow write; None when the send came later."""
        began, ended = self._turn.last_write
        if connection.state.arrived < began:
            if not self._ctx.config.broker_fast_failure_enable:
                return None
            return _cleaned("PCBUSY_CLEAN_QUEUE", waited_ms, connection)
        return REJECTED if connection.state.arrived < ended + AFTER_WRITE_S else None

    def _refuse(self, remark: str) -> RemotingCommand:
        self.refused[remark[1 : remark.index("]")]] += 1
        return RemotingCommand.response(ResponseCode.SYSTEM_BUSY, remark)


def _cleaned(name: str, waited_ms: float, connection: Connection) -> str:
    return (
        f"[{name}]broker busy, start flow control for a while, "
        f"period in queue: {round(waited_ms)}ms, size of queue: {connection.held}"
    )
