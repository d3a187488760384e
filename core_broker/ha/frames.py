"""Frames of a replication connection, in both directions, without I/O.

    master to slave   packet: int64 physical offset of the first body byte, int32 body size, body
    slave to master   report: int64 end of the slave's log

A packet without a body is a heartbeat: its offset is the next offset to send. All numbers are
big-endian. Either side splits received bytes of any chunking. The first report is the requested
start, each later one acknowledges all bytes before its offset. Compatible with RocketMQ's
DefaultHAConnection and DefaultHAClient.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from core_broker.errors import ProtocolError
from core_broker.limits import REPLICATED_BYTES_MAX

_PACKET_HEADER = Struct(">qi")
_REPORT = Struct(">q")

#: Size of the header of a packet, bytes.
PACKET_HEADER_BYTES = _PACKET_HEADER.size
#: Size of a report, bytes.
REPORT_BYTES = _REPORT.size
#: Maximum size of the body of a packet, bytes.
BODY_BYTES_MAX = REPLICATED_BYTES_MAX


class Packet(NamedTuple):
    """Bytes of the commit log, or a heartbeat."""

    #: Physical offset of the first body byte.
    offset: int
    #: Empty in a heartbeat.
    body: bytes


def encode_packet_header(offset: int, body_bytes: int) -> bytes:
    """Return the header of a packet; the caller sends the body behind the header.

    Raises ValueError for a body above `BODY_BYTES_MAX`.
    """
    if not 0 <= body_bytes <= BODY_BYTES_MAX:
        raise ValueError(f"a packet of {body_bytes} bytes; expected 0 to {BODY_BYTES_MAX}")
    return _PACKET_HEADER.pack(offset, body_bytes)


def encode_report(offset: int) -> bytes:
    """Return a report of the end of the slave's log."""
    return _REPORT.pack(offset)


class PacketSplitter:
    """Splits the bytes from a master into packets.

    A malformed header ends the stream: the packets before the header are still returned, `fault`
    describes the error, and every later `feed` raises `fault`. Keeps at most one packet, that is
    `BODY_BYTES_MAX` and a header, besides the bytes of one `feed`. `feed` copies the bytes, so the
    caller may reuse the buffer.
    """

    __slots__ = ("_needed", "_rest", "fault")

    def __init__(self) -> None:
        self.fault: ProtocolError | None = None
        self._rest = bytearray()
        self._needed = PACKET_HEADER_BYTES

    @property
    def pending_bytes(self) -> int:
        """Bytes of the incomplete packet."""
        return len(self._rest)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Packet]:
        """Return the packets completed by the bytes."""
        if self.fault is not None:
            raise self.fault
        rest = self._rest
        rest += data
        if len(rest) < self._needed:
            return []
        packets: list[Packet] = []
        at, end = 0, len(rest)
        self._needed = PACKET_HEADER_BYTES
        with memoryview(rest) as view:
            while end - at >= PACKET_HEADER_BYTES:
                offset, body_bytes = _PACKET_HEADER.unpack_from(view, at)
                if offset < 0 or not 0 <= body_bytes <= BODY_BYTES_MAX:
                    self.fault = ProtocolError(
                        f"a replication packet of {body_bytes} bytes at offset {offset};"
                        f" expected 0 to {BODY_BYTES_MAX} bytes and an offset of at least 0"
                    )
                    at = end
                    break
                body_at = at + PACKET_HEADER_BYTES
                if end - body_at < body_bytes:
                    self._needed = PACKET_HEADER_BYTES + body_bytes
                    break
                at = body_at + body_bytes
                packets.append(Packet(offset, bytes(view[body_at:at])))
        del rest[:at]
        return packets


def join_packets(packets: Sequence[Packet]) -> Iterator[Packet]:
    """Yield one packet for each run of packets that follow each other in the log.

    A slave writes the joined bytes at once. A heartbeat joins with the packet behind it.
    """
    start = end = 0
    bodies: list[bytes] = []
    for packet in packets:
        if bodies and packet.offset != end:
            yield _joined(start, bodies)
            bodies = []
        if not bodies:
            start = packet.offset
        bodies.append(packet.body)
        end = packet.offset + len(packet.body)
    if bodies:
        yield _joined(start, bodies)


def _joined(start: int, bodies: list[bytes]) -> Packet:
    return Packet(start, bodies[0] if len(bodies) == 1 else b"".join(bodies))


class ReportReader:
    """Reads the reports of a slave.

    Keeps less than one report besides the bytes of one `feed`.
    """

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes | bytearray | memoryview) -> list[int]:
        """Return the reported offsets completed by the bytes, oldest first.

        Raises ProtocolError for a negative offset.
        """
        received = self._rest + bytes(data)
        whole = len(received) - len(received) % REPORT_BYTES
        self._rest = received[whole:]
        offsets: list[int] = [offset for (offset,) in _REPORT.iter_unpack(received[:whole])]
        if offsets and min(offsets) < 0:
            raise ProtocolError(f"a slave reports the offset {min(offsets)}; expected at least 0")
        return offsets
