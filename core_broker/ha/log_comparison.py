"""Compares the logs of master and slave before bytes are transferred.

The replication protocol has no handshake: a Java master answers a slave with a longer log with
heartbeats, and sends data as soon as its own log is longer. So the slave asks the master's
listenPort for the range of its log (code 28), and for the newest record of the slave (code 33), and
compares the bytes. Older records are not compared. Without the master's address, or when the master
refuses the requests, nothing can be compared.

An empty slave uses the same requests to copy the whole log: a report of 0 means "the newest file"
to a master, so the slave fetches the first record and reports its end. A Java master refuses the
first request until it has sampled its rates, a second after its start: an empty slave asks again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from core_broker.errors import GantryError, RequestRefused
from core_broker.ha.faults import DivergedLog, ReplicationRefused
from core_broker.ha.record_stream import RecordStream
from core_broker.remoting.bodies import KVTable, decode_body
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import ViewMessageRequestHeader
from core_broker.store.replica import Replica

#: Requests of an empty slave for the range of the log, and the pause between them, seconds.
EMPTY_REQUESTS_MAX = 10
EMPTY_RETRY_S = 0.5

#: Reads a record of the own log; None without one.
ReadRecord = Callable[[int], Awaitable[bytes | None]]

log = logging.getLogger(__name__)


class MasterLog(NamedTuple):
    """The range of the master's log, and the start time of the master, ms."""

    min_offset: int
    max_offset: int
    boot_ms: int


class LogComparison:
    """Asks the master."""

    def __init__(self, client: RemotingClient, replica: Replica, read_record: ReadRecord) -> None:
        self._client = client
        self._replica = replica
        self._read_record = read_record
        self._told = ""

    async def master_log(self, master_addr: str) -> MasterLog:
        """Return the range of the master's log; raises GantryError without an answer."""
        command = RemotingCommand.request(RequestCode.GET_BROKER_RUNTIME_INFO)
        table = decode_body(KVTable, await self._answer(master_addr, command)).table
        try:
            return MasterLog(
                int(table["commitLogMinOffset"]),
                int(table["commitLogMaxOffset"]),
                int(table.get("bootTimestamp", "0")),
            )
        except (KeyError, ValueError):
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, "the runtime information has no log offsets"
            ) from None

    async def compare(self, master_addr: str) -> MasterLog | None:
        """Compare both logs, and prepare an empty log; None when nothing could be compared.

        Raises DivergedLog when the slave's log is no beginning of the master's log.
        """
        if not master_addr:
            self._tell("the address of the master is unknown")
            return None
        try:
            # The own end comes first: the master's log grows meanwhile.
            end = self._replica.end
            master = await self._range(master_addr)
            self.check_range(end, master)
            if self._replica.is_empty:
                await self._begin(master_addr, master)
            else:
                await self._compare_newest(master_addr, master)
        except ReplicationRefused:
            raise
        except GantryError as error:
            self._tell(str(error))
            return None
        return master

    async def _range(self, master_addr: str) -> MasterLog:
        """Return the range of the master's log; an empty slave asks a refusing master again."""
        attempts = EMPTY_REQUESTS_MAX if self._replica.is_empty else 1
        for _ in range(attempts - 1):
            try:
                return await self.master_log(master_addr)
            except RequestRefused:
                await asyncio.sleep(EMPTY_RETRY_S)
        return await self.master_log(master_addr)

    def check_range(self, end: int, master: MasterLog) -> None:
        """Raise DivergedLog when the master's log does not contain offset `end`."""
        if self._replica.is_empty:
            return
        if end > master.max_offset:
            raise DivergedLog(
                f"the log of this slave ends at {end}, that of the master at {master.max_offset};"
                " the master has lost messages, or another broker was master before"
            )
        if end < master.min_offset:
            raise DivergedLog(
                f"the log of this slave ends at {end}, and the master has deleted its log"
                f" before {master.min_offset}"
            )

    async def _compare_newest(self, master_addr: str, master: MasterLog) -> None:
        offset = self._replica.last_record
        if offset < master.min_offset:
            return
        own = await self._read_record(offset)
        if own is None:
            return
        theirs = await self._record(master_addr, offset)
        if theirs != own:
            raise DivergedLog(f"the newest record of this slave, at {offset}, differs")

    async def _begin(self, master_addr: str, master: MasterLog) -> None:
        """Prepare an empty log for the whole log of the master."""
        replica = self._replica
        start = master.min_offset
        if start % replica.segment_size or master.max_offset - start <= replica.segment_size:
            return
        if start:
            replica.begin_at(start)
            return
        first = await self._record(master_addr, 0)
        for stretch in RecordStream(0, replica.segment_size).feed(first or b""):
            replica.append(stretch.data, stretch.records)

    async def _record(self, master_addr: str, offset: int) -> bytes | None:
        """Return a record of the master's log; None when no record begins at the offset."""
        header = ViewMessageRequestHeader(offset=offset)
        command = RemotingCommand.request(RequestCode.VIEW_MESSAGE_BY_ID, header)
        try:
            return await self._answer(master_addr, command)
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.SYSTEM_ERROR:
                return None
            raise

    async def _answer(self, master_addr: str, command: RemotingCommand) -> bytes:
        answer = await self._client.invoke(master_addr, command)
        if answer.code != ResponseCode.SUCCESS:
            raise RequestRefused(answer.code, f"{master_addr}: {answer.remark or ''}")
        return bytes(answer.body)

    def _tell(self, reason: str) -> None:
        if reason != self._told:
            self._told = reason
            log.warning("the logs of master and slave are not compared: %s", reason)
