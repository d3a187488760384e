"""Requests that wait for the controllers' log: one task each, answered later."""

import asyncio
from collections.abc import Mapping

from core_broker.controller.processor import Answer
from core_broker.errors import RequestRefused
from core_broker.raft.machine import NotLeader, ProposalsFull, ProposalUncertain, ReplicatedLog
from core_broker.remoting.codes import ResponseCode as Code
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Endpoint

#: Requests that wait for the log at once.
REQUESTS_MAX = 512
#: Body of such a request, bytes; the largest is a list of names of broker sets.
BODY_BYTES_MAX = 256 * 1024

NOT_LEADER = "The controller is not in leader state"


class LogRequests:
    """Runs the handlers of `in_log`; other members than the leader refuse, as in RocketMQ."""

    def __init__(self, handlers: Mapping[int, Answer], replicated: ReplicatedLog) -> None:
        self._handlers = handlers
        self._log = replicated
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, endpoint: Endpoint, connection: Connection, request: RemotingCommand) -> None:
        """Answer a request later; raises RequestRefused for one that is refused at once."""
        if not self._log.is_leader:
            raise RequestRefused(Code.CONTROLLER_NOT_LEADER, NOT_LEADER)
        if len(self._running) >= REQUESTS_MAX:
            raise RequestRefused(
                Code.SYSTEM_BUSY, f"[OVERLOAD]{REQUESTS_MAX} requests wait for the log"
            )
        if len(request.body) > BODY_BYTES_MAX:
            raise RequestRefused(
                Code.CONTROLLER_INVALID_REQUEST,
                f"a body of {len(request.body)} bytes, {BODY_BYTES_MAX} are possible",
            )
        task = asyncio.get_running_loop().create_task(self._run(endpoint, connection, request))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Cancel the requests that still wait; they stay unanswered."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(
        self, endpoint: Endpoint, connection: Connection, request: RemotingCommand
    ) -> None:
        try:
            response = await self._handlers[request.code](request)
        except Exception as error:  # noqa: BLE001 - failure() logs the error and answers
            response = endpoint.failure(connection, request, _as_refusal(error))
        connection.answer(request, response)


def _as_refusal(error: Exception) -> Exception:
    """Return the refusal that tells a broker what the log told the controller."""
    if isinstance(error, NotLeader):
        return RequestRefused(Code.CONTROLLER_NOT_LEADER, NOT_LEADER)
    if isinstance(error, ProposalsFull):
        return RequestRefused(Code.SYSTEM_BUSY, f"[OVERLOAD]{error}")
    if isinstance(error, ProposalUncertain):
        return RequestRefused(Code.SYSTEM_ERROR, str(error))
    return error
