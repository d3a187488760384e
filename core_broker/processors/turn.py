"""The end of an event-loop iteration (a turn) in the broker: stage sends, write, wake pulls.

    stage_sends       the fast path gives its messages to the store
    write_messages    one write to the commit log, of all staged messages or of none; producers
                      wait for disk and slaves as far as the settings promise (durability.py)
    wake_pulls        held pulls are answered from the new messages

The server runs the steps before the write of the turn's answers (broker/assembly.py), and drops the
answers after an error. Handlers of one-way messages and of later answers call `end_soon`, because
the server runs the steps only for a turn with answers.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from core_broker.errors import StoreReadOnly
from core_broker.processors.durability import Confirmed, Durability
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.store import MessageStore
from core_broker.store.appender import Written

log = logging.getLogger(__name__)

Step = Callable[[], None]
#: A callback and the number of producers behind the callback.
_Wait = tuple[Confirmed, int]
#: Begin and end of a write in a turn without messages.
_NO_WRITE = (0.0, 0.0)


class Turn:
    """Ends turns. `wake_pulls` answers ready pulls."""

    def __init__(self, store: MessageStore, wake_pulls: Step, durability: Durability) -> None:
        #: First and last step of the end: bound methods, because a wrapper costs a Python call.
        self.stage_sends: Step = store.stage_pending
        self.wake_pulls = wake_pulls
        self.durability = durability
        self._store = store
        self._waits: list[_Wait] = []
        #: Number of producers waiting for disk or slaves.
        self.waiters = 0
        self._is_ending_soon = False
        self._failure: StoreReadOnly | None = None
        #: Begin and end of the last write to the log, in seconds of the monotonic clock.
        self.last_write = _NO_WRITE

    def when_confirmed(self, confirmed: Confirmed) -> None:
        """Call `confirmed` once disk and slaves have the messages of the turn, or cannot have."""
        self.add_waiters(confirmed, 1)
        self.end_soon()

    async def confirmation(self) -> ResponseCode:
        """Return once disk and slaves have the messages of the turn, with the code of the wait."""
        code: asyncio.Future[ResponseCode] = asyncio.get_running_loop().create_future()

        def confirmed(result: ResponseCode) -> None:
            if not code.done():  # the caller may be cancelled meanwhile
                code.set_result(result)

        self.when_confirmed(confirmed)
        return await code

    def confirm(
        self, connection: Connection, request: RemotingCommand, response: RemotingCommand
    ) -> RemotingCommand | None:
        """Answer a request that stores messages in the turn: at once, or once they are confirmed.

        A message whose copy or flush is late is stored all the same, so `response` answers the
        request then; only a failed write or a read-only store is refused, and under controllers a
        late copy: the client must send again what a failover may take back.
        """
        if request.is_oneway:
            self.end_soon()
            return None
        if not self.durability.is_awaited:
            return response

        def confirmed(code: ResponseCode) -> None:
            is_stored = code != ResponseCode.SERVICE_NOT_AVAILABLE and self._store.writable
            answer = response
            if code != ResponseCode.SUCCESS and not is_stored:
                refusal = "the message is not stored: the disk failed, or another broker is master"
                answer = RemotingCommand.response(ResponseCode.SERVICE_NOT_AVAILABLE, refusal)
            elif self.durability.may_be_lost(code):
                refusal = "the message may be lost: not all replicas have it in time"
                answer = RemotingCommand.response(code, refusal)
            connection.answer(request, answer)

        self.when_confirmed(confirmed)
        return None

    def add_waiters(self, confirmed: Confirmed, producers: int) -> None:
        """Do the work of `when_confirmed` for several producers; the caller ends the turn."""
        self._waits.append((confirmed, producers))
        self.waiters += producers

    def end_soon(self) -> None:
        """Schedule the end of the turn, for a turn without answers."""
        if not self._is_ending_soon:
            self._is_ending_soon = True
            asyncio.get_running_loop().call_soon(self._end_alone)

    def end(self) -> None:
        """Run the steps outside of the server's pipeline, in the same order.

        Raises StoreReadOnly when the messages of the turn are not stored; the server then sends
        none of its answers.
        """
        try:
            self.stage_sends()
            self.write_messages()
        except StoreReadOnly as error:
            # The server may end the turn next, and must then drop the turn's answers.
            if self._failure is None:
                self._failure = error
                asyncio.get_running_loop().call_soon(self._forget_failure)
            raise
        self.wake_pulls()

    def write_messages(self) -> None:
        """Write the staged messages of the turn, and register the producers that wait.

        Raises StoreReadOnly when the messages of the turn are not stored.
        """
        if self._failure is not None:
            raise self._failure
        waits, self._waits = self._waits, []
        try:
            written = self._store.write_staged()
        except StoreReadOnly:
            self._confirmed(waits, ResponseCode.SERVICE_NOT_AVAILABLE)
            raise
        self.last_write = _NO_WRITE if written is None else written[1:3]
        if waits:
            end = self._store.max_offset_physical
            self.durability.confirm(end, partial(self._written_and_confirmed, waits, written))
        elif written is not None:
            put_began, _, ended, messages = written
            self._store.put_times.add(ended - put_began, messages)

    def _written_and_confirmed(
        self, waits: list[_Wait], written: Written | None, code: ResponseCode
    ) -> None:
        if written is not None:
            self._store.put_times.add(time.monotonic() - written[0], written[3])
        self._confirmed(waits, code)

    def _confirmed(self, waits: list[_Wait], code: ResponseCode) -> None:
        for confirmed, producers in waits:
            self.waiters -= producers
            confirmed(code)

    def _end_alone(self) -> None:
        self._is_ending_soon = False
        try:
            self.end()
        except StoreReadOnly as error:
            log.error("unwritten messages are lost: %s", error)  # noqa: TRY400 - known cause

    def _forget_failure(self) -> None:
        self._failure = None
