"""One connection from a slave: reports in, packets of the commit log out.

    opened  --first report-->  transferring  -->  closed

The first report is the start that the slave requests: 0 for an empty log, else the end of its log.
A packet never crosses the end of a log file and has at most `haTransferBatchSize` bytes; a packet
may begin and end within a record. Compatible with RocketMQ's DefaultHAConnection, which however
leaves a slave without data, and without an error, when the slave's log ends outside the master's
log; here the connection is closed and the log of the broker names the reason.

The memory per slave is bounded: bytes are read only when the socket has taken all earlier bytes.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from core_broker.config import BrokerConfig
from core_broker.errors import GantryError, ProtocolError, StoreBusy
from core_broker.ha.frames import ReportReader, encode_packet_header
from core_broker.ha.pace import Pace
from core_broker.remoting.addresses import host_port
from core_broker.store import ColdRead, MessageStore

#: Maximum bytes for one slave per event-loop iteration, unless haTransferBatchSize is larger.
CHUNK_BYTES_MAX = 256 * 1024


class LinkOwner(Protocol):
    """Receives the events of connections."""

    def opened(self, link: "SlaveLink") -> str:
        """A connection is open; returns the reason to close it, or ""."""

    def requested(self, link: "SlaveLink", offset: int) -> None:
        """A slave has requested an offset, and the transfer begins at `link.sent`."""

    def acknowledged(self, link: "SlaveLink") -> None:
        """`link.acknowledged` has grown."""

    def closed(self, link: "SlaveLink", fault: GantryError | None) -> None:
        """A connection is lost, or closed because of a fault."""


class SlaveLink(asyncio.Protocol):
    """The asyncio protocol of one connection. Event loop only."""

    def __init__(
        self,
        store: MessageStore,
        settings: Callable[[], BrokerConfig],
        owner: LinkOwner,
        clock_ms: Callable[[], int],
    ) -> None:
        #: Address of the slave, host and port.
        self.peer_host, self.peer = "", ""
        #: End of the slave's log by its last report; 0 before the first report.
        self.acknowledged = 0
        #: Offset of the next byte to send.
        self.sent = 0
        #: True from the first report on.
        self.is_transferring = False
        self.pace = Pace()
        self._store = store
        self._settings = settings
        self._owner = owner
        self._clock_ms = clock_ms
        self._reports = ReportReader()
        self._transport: asyncio.Transport | None = None
        self._fault: GantryError | None = None
        self._is_paused = False
        self._is_reading = False
        self._is_scheduled = False
        #: Time of the connection, and of the last bytes from the slave, ms.
        self.opened_ms = self.read_ms = self._written_ms = clock_ms()

    # -- events of the connection --

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast("asyncio.Transport", transport)
        self.peer_host, port = host_port(transport.get_extra_info("peername"))
        self.peer = f"{self.peer_host}:{port}"
        # The transport asks for a pause as soon as the socket takes less than everything.
        self._transport.set_write_buffer_limits(high=0)
        reason = self._owner.opened(self)
        if reason:
            self.close(ProtocolError(reason))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is lost."""
        self._transport = None
        self.is_transferring = False
        self._owner.closed(self, self._fault)

    def pause_writing(self) -> None:
        """The slave reads slower than the master sends."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The socket has taken all bytes."""
        self._is_paused = False
        self.send()

    def data_received(self, data: bytes) -> None:
        """Reports of the slave."""
        if self._transport is None or self._transport.is_closing():
            return
        self.read_ms = self._clock_ms()
        try:
            self._received(data)
        except ProtocolError as fault:
            self.close(fault)

    def close(self, fault: GantryError | None = None) -> None:
        """Close at once, without the bytes that the socket has not taken."""
        if self._transport is not None and not self._transport.is_closing():
            self._fault = fault
            self.is_transferring = False
            self._transport.abort()

    # -- reports --

    def _received(self, data: bytes) -> None:
        """Take bytes of the slave; raises ProtocolError, which closes the connection."""
        offsets = self._reports.feed(data)
        if offsets:
            self._reported(max(offsets), offsets[-1])

    def _reported(self, highest: int, newest: int) -> None:
        end = self._store.max_offset_physical
        if highest > end:
            raise ProtocolError(
                f"the slave reports offset {highest}, but this master's log ends at {end}: the"
                " logs have diverged; remove the store of the slave, so that it copies the log anew"
            )
        if not self.is_transferring:
            self._begin(newest, end)
        elif newest > self.acknowledged:
            if newest > self.sent:
                raise ProtocolError(
                    f"the slave acknowledges offset {newest}, but got bytes up to {self.sent} only"
                )
            self.acknowledged = newest
            self._owner.acknowledged(self)

    def _begin(self, offset: int, end: int) -> None:
        oldest = self._store.min_offset_physical
        self.sent = offset
        if not offset:
            is_whole = self._settings().ha_transfer_from_first_file
            self.sent = oldest if is_whole else self._store.log_segment_start(end)
        elif offset < oldest:
            raise ProtocolError(
                f"the slave asks for offset {offset}, but this master's log begins at {oldest}:"
                " older files are deleted; remove the store of the slave, so that it copies the log"
                " anew"
            )
        self.acknowledged = offset
        self.is_transferring = True
        self._owner.requested(self, offset)
        self.send()

    # -- packets --

    def send(self) -> None:
        """Send the next bytes of the log that socket, flow control and memory allow now."""
        transport = self._transport
        if transport is None or not self.is_transferring or self._is_paused or self._is_reading:
            return
        config, now_ms = self._settings(), self._clock_ms()
        batch = config.ha_transfer_batch_size
        unsent = self._store.max_offset_physical - self.sent
        size = min(unsent, max(CHUNK_BYTES_MAX, batch))
        if config.ha_flow_control_enable:
            size = min(size, self.pace.budget(config.max_ha_transfer_byte_in_second, now_ms))
        if size <= 0:
            return
        try:
            data = self._store.read_log(self.sent, size)
        except ColdRead as cold:
            self._is_reading = True
            self._store.cold_reads.warm(cold, self._warmed)
            return
        except OSError as error:
            self.close(GantryError(f"the log cannot be read at offset {self.sent}: {error}"))
            return
        if not data:
            self.close(GantryError(f"the log has no offset {self.sent} any more"))
            return
        self._write(transport, data, batch)
        self.pace.sent(len(data), now_ms)
        self._written_ms = now_ms
        if len(data) < unsent and not self._is_scheduled:
            # The other connections come first.
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._send_next)

    def _send_next(self) -> None:
        self._is_scheduled = False
        self.send()

    def _write(self, transport: asyncio.Transport, data: bytes | bytearray, batch: int) -> None:
        """Send the bytes of the log at `sent`, in packets of at most `batch` bytes."""
        view = memoryview(data)
        parts: list[bytes | memoryview] = []
        for at in range(0, len(data), batch):
            body = view[at : at + batch]
            parts += (encode_packet_header(self.sent + at, len(body)), body)
        self.sent += len(data)
        transport.writelines(parts)

    def _heartbeat(self) -> bytes:
        """Return a packet without bytes of the log."""
        return encode_packet_header(self.sent, 0)

    def _warmed(self, error: Exception | None) -> None:
        """A cold read has finished; a refused one is repeated by the next `tick`."""
        self._is_reading = False
        if error is None:
            self.send()
        elif not isinstance(error, StoreBusy):
            self.close(GantryError(f"the log cannot be read at offset {self.sent}: {error}"))

    def tick(self, now_ms: int) -> None:
        """Continue after a refused read or a used budget, send heartbeats, close a silent peer."""
        config = self._settings()
        if now_ms - self.read_ms >= config.ha_housekeeping_interval:
            self.close(
                GantryError(
                    f"no report for {config.ha_housekeeping_interval} ms (haHousekeepingInterval)"
                )
            )
            return
        self.send()
        transport = self._transport
        is_due = now_ms - self._written_ms >= config.ha_send_heartbeat_interval
        if is_due and self.is_transferring and transport is not None and not self._is_paused:
            self._written_ms = now_ms
            transport.write(self._heartbeat())
