"""The slave's side of a replication connection.

    connect · compare both logs (log_comparison.py) · report the end of the own log
    then: packets are split into records, records are written and dispatched, their end is reported

The first report is sent at once; Java slaves wait five seconds. A report counts written bytes
only, as in RocketMQ not necessarily flushed bytes. A packet at another offset than the end of the
own log ends the connection as diverged; only an empty log accepts any segment as its begin. A
master that is silent for haHousekeepingInterval is given up. Compatible with RocketMQ's
DefaultHAClient.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

from core_broker.config import BrokerConfig
from core_broker.errors import ConnectFailed, ConnectionClosed, GantryError
from core_broker.ha.faults import DamagedStream, DivergedLog, ReplicationRefused
from core_broker.ha.frames import PacketSplitter, encode_report, join_packets
from core_broker.ha.record_stream import RecordStream
from core_broker.ha.status import SlaveState, SlaveStatus
from core_broker.remoting.client import split_addr
from core_broker.remoting.tls_client import ClientTls, handshake_failure
from core_broker.store.replica import Replica

#: Maximum bytes of one read from the master: the work of one event-loop iteration.
READ_BYTES = 256 * 1024
#: Timeout for opening a connection, seconds.
CONNECT_S = 3.0
#: Pause before the next attempt, seconds; doubled after each failure in a row.
RETRY_S_MIN, RETRY_S_MAX = 0.5, 10.0
#: Pause after a refusal, which only an operator can end, seconds.
REFUSED_RETRY_S = 30.0
#: Pause between two looks for a master, seconds.
SEARCH_S = 0.2

log = logging.getLogger(__name__)


class HaClient:
    """Copies the log of the master until cancelled.

    `ha_addr` returns the master's HA address, "" while unknown. `compare` checks both logs before
    each connection; may raise ReplicationRefused. `appended` is called after each write. With
    haTlsEnable the log comes over TLS, which masters of RocketMQ do not speak.
    """

    def __init__(
        self,
        replica: Replica,
        settings: Callable[[], BrokerConfig],
        ha_addr: Callable[[], str],
        compare: Callable[[], Awaitable[None]],
        appended: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self.status = SlaveStatus()
        self._replica = replica
        self._settings = settings
        self._ha_addr = ha_addr
        self._compare = compare
        self._appended = appended
        self._now_ms = now_ms
        self._tls = ClientTls.of(settings()) if settings().ha_tls_enable else None
        self._writer: asyncio.StreamWriter | None = None
        self._reported = -1
        self._refusal: ReplicationRefused | None = None
        self._splitter = PacketSplitter()
        self._stream = RecordStream(replica.end, replica.segment_size)

    async def run(self) -> None:
        """Replicate for ever."""
        retry_s = RETRY_S_MIN
        while True:
            addr = self._ha_addr()
            if not addr:
                await asyncio.sleep(SEARCH_S)
                continue
            received = self.status.received_bytes
            try:
                await self._replicate(addr)
            except ReplicationRefused as refusal:
                self._note_refusal(refusal)
                retry_s = self._refused_retry_s
            except (GantryError, OSError) as error:
                self._note(SlaveState.WAITING, str(error))
            except Exception:
                log.exception("replication from %s failed", addr)
                self._note(SlaveState.WAITING, "replication failed; see the log")
            if received != self.status.received_bytes:
                retry_s = RETRY_S_MIN
            await asyncio.sleep(retry_s)
            retry_s = min(retry_s * 2, self._retry_s_max)

    @property
    def _retry_s_max(self) -> float:
        return RETRY_S_MAX

    @property
    def _refused_retry_s(self) -> float:
        return REFUSED_RETRY_S

    def refuse(self, refusal: ReplicationRefused) -> None:
        """Close the connection, because the logs differ outside of the transferred bytes."""
        if self._writer is not None:
            self._refusal = refusal
            self._writer.transport.abort()
        else:
            self._note_refusal(refusal)

    async def _replicate(self, addr: str) -> None:
        host, port = split_addr(addr)
        status = self.status
        status.ha_addr = addr
        if status.state is SlaveState.NO_MASTER:
            status.state = SlaveState.CONNECTING
        await self._compare()
        try:
            async with asyncio.timeout(CONNECT_S):
                context = None if self._tls is None else self._tls.context()
                reader, writer = await asyncio.open_connection(
                    host, port, limit=READ_BYTES, ssl=context
                )
        except TimeoutError:
            raise ConnectFailed(addr, f"no answer in {CONNECT_S:.0f} s") from None
        except ssl.SSLError as fault:
            raise ConnectFailed(addr, handshake_failure(fault)) from None
        except OSError as fault:
            raise ConnectFailed(addr, os.strerror(fault.errno) if fault.errno else "") from None
        self._writer, self._refusal = writer, None
        status.connections += 1
        try:
            await self._transfer(addr, reader, writer)
        except (GantryError, OSError) as error:
            raise (self._refusal or error) from None
        finally:
            self._writer = None
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def _transfer(
        self, addr: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        self._reported = -1
        self._begin(writer)
        log.info("replicating from %s, from offset %d on", addr, self._replica.end)
        reported_at = read_at = loop.time()
        while True:
            config = self._settings()
            silent_ms = config.ha_housekeeping_interval
            report_at = reported_at + config.ha_send_heartbeat_interval / 1000
            try:
                async with asyncio.timeout_at(min(report_at, read_at + silent_ms / 1000)):
                    data = await reader.read(READ_BYTES)
            except TimeoutError:
                if loop.time() >= read_at + silent_ms / 1000:
                    raise ConnectionClosed(
                        addr, f"the master sent nothing for haHousekeepingInterval ({silent_ms} ms)"
                    ) from None
                self._report(writer)
                reported_at = loop.time()
                continue
            if not data:
                raise ConnectionClosed(addr, "the master closed the connection")
            self.status.last_read_ms = self._now_ms()
            await self._received(data, writer)
            read_at = loop.time()
            if self._replica.end > self._reported:
                self._report(writer)

    def _begin(self, writer: asyncio.StreamWriter) -> None:
        """Send the first bytes of a connection."""
        self._splitter = PacketSplitter()
        self._stream = RecordStream(self._replica.end, self._replica.segment_size)
        self._report(writer)

    async def _received(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        """Take bytes of the master."""
        self._stream = self._take(data, self._splitter, self._stream)

    def _take(self, data: bytes, splitter: PacketSplitter, stream: RecordStream) -> RecordStream:
        """Write the records completed by received bytes; return the stream of the next bytes."""
        replica = self._replica
        end = replica.end
        packets = splitter.feed(data)
        for offset, body in join_packets(packets):
            if replica.is_empty and stream.end == replica.end:
                if not body:
                    continue  # a heartbeat to an empty log has any offset
                stream = self._stream_at(offset)
            if offset != stream.end:
                raise DivergedLog(
                    f"the master sends the bytes from offset {offset} on, and the log of this"
                    f" slave ends at {stream.end}"
                )
            self._append(stream, body)
        if splitter.fault is not None:
            raise splitter.fault
        if packets:
            self._note(SlaveState.TRANSFERRING, "")
        if replica.end != end:
            self._appended()
        return stream

    def _append(self, stream: RecordStream, body: bytes) -> None:
        """Write the records that the bytes complete."""
        for stretch in stream.feed(body):
            if stretch.records:
                self._replica.append(stretch.data, stretch.records)
            else:
                self._replica.end_segment(stretch.data)
        self.status.received_bytes += len(body)
        self.status.master_end = max(self.status.master_end, stream.end)

    def _stream_at(self, offset: int) -> RecordStream:
        """Let the empty log begin where the master begins."""
        replica = self._replica
        if offset % replica.segment_size:
            raise DivergedLog(
                f"the master sends the bytes from offset {offset} on, which is no begin of a"
                " segment; mappedFileSizeCommitLog must be equal on both brokers"
            )
        replica.begin_at(offset)
        return RecordStream(offset, replica.segment_size)

    def _report(self, writer: asyncio.StreamWriter) -> None:
        """Report the end of the written log; left out while an earlier report is unsent."""
        if writer.transport.get_write_buffer_size():
            return
        self._reported = self._replica.end
        writer.write(encode_report(self._reported))
        self.status.last_write_ms = self._now_ms()

    def _note_refusal(self, refusal: ReplicationRefused) -> None:
        is_damaged = isinstance(refusal, DamagedStream)
        state = SlaveState.DAMAGED if is_damaged else SlaveState.DIVERGED
        if str(refusal) != self.status.problem:
            log.error("replication from %s is refused: %s", self.status.ha_addr, refusal)
        self.status.state, self.status.problem = state, str(refusal)

    def _note(self, state: SlaveState, problem: str) -> None:
        status = self.status
        if problem and problem != status.problem:
            log.warning("replication from %s is interrupted: %s", status.ha_addr, problem)
        status.state, status.problem = state, problem
