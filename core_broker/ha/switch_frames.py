"""Frames of a replication connection between brokers under a controller, without I/O.

    slave handshake    int32 1, int16 sync from last file, int16 async learner, int64 broker id
    slave report       int32 2, int64 end of the slave's log
    master handshake   int32 1, int32 size of the epochs, int64 end of the master's log, int32 last
                       epoch; each epoch: int32 epoch, int64 first offset
    master transfer    int32 2, int32 size of the body, int64 offset of the first body byte,
                       int32 epoch, int64 first offset of the epoch, int64 confirm offset; body

A transfer without a body is a heartbeat. All numbers are big-endian. Either side splits received
bytes of any chunking. Compatible with RocketMQ's AutoSwitchHAClient and AutoSwitchHAConnection from
5.1.1 on; 5.0.0 to 5.1.0 have another handshake.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from core_broker.errors import ProtocolError
from core_broker.ha.frames import BODY_BYTES_MAX as PACKET_BODY_BYTES_MAX
from core_broker.ha.frames import PACKET_HEADER_BYTES

HANDSHAKE, TRANSFER = 1, 2
_STATE = Struct(">i")
_SLAVE_HANDSHAKE = Struct(">ihhq")
_REPORT = Struct(">iq")
_MASTER_HANDSHAKE = Struct(">iiqi")
_EPOCH = Struct(">iq")
_TRANSFER = Struct(">iiqiqq")

#: Sizes of the frames of a slave, and of the heads of the frames of a master, bytes.
SLAVE_HANDSHAKE_BYTES = _SLAVE_HANDSHAKE.size
REPORT_BYTES = _REPORT.size
MASTER_HANDSHAKE_BYTES = _MASTER_HANDSHAKE.size
TRANSFER_BYTES = _TRANSFER.size
#: Maximum size of the body of a transfer, bytes: a Java slave keeps it with its head in 4 MiB.
BODY_BYTES_MAX = PACKET_BODY_BYTES_MAX + PACKET_HEADER_BYTES - TRANSFER_BYTES
#: Epochs in a handshake, as many as RocketMQ's buffer holds; the newest ones are sent.
EPOCHS_SENT_MAX = 1_000


class SlaveHandshake(NamedTuple):
    """The first frame of a slave."""

    broker_id: int
    #: The slave wants the last segment only, when its log is empty.
    is_from_last_file: bool = False
    #: The slave is never part of the sync-state set.
    is_learner: bool = False


class Report(NamedTuple):
    """All bytes before `offset` are in the slave's log."""

    offset: int


class MasterHandshake(NamedTuple):
    """The master's log: its end, and its epochs with their first offsets, oldest first."""

    end: int
    epochs: list[tuple[int, int]]


class Transfer(NamedTuple):
    """Bytes of one epoch of the commit log; a heartbeat without a body."""

    offset: int
    epoch: int
    epoch_start: int
    #: All replicas of the sync-state set have the bytes before.
    confirm_offset: int
    body: bytes


def encode_slave_handshake(handshake: SlaveHandshake) -> bytes:
    """Return the frame; a Java master needs all of it in one write."""
    flags = int(handshake.is_from_last_file), int(handshake.is_learner)
    return _SLAVE_HANDSHAKE.pack(HANDSHAKE, *flags, handshake.broker_id)


def encode_report(offset: int) -> bytes:
    """Return the report of the end of the slave's log."""
    return _REPORT.pack(TRANSFER, offset)


def encode_master_handshake(end: int, epochs: Iterable[tuple[int, int]]) -> bytes:
    """Return the frame; of more than `EPOCHS_SENT_MAX` epochs, the oldest ones are left out."""
    sent = list(epochs)[-EPOCHS_SENT_MAX:]
    last = sent[-1][0] if sent else -1
    head = _MASTER_HANDSHAKE.pack(HANDSHAKE, _EPOCH.size * len(sent), end, last)
    return head + b"".join(_EPOCH.pack(*each) for each in sent)


def encode_transfer_header(
    offset: int, body_bytes: int, epoch: tuple[int, int], confirm_offset: int
) -> bytes:
    """Return the head of a transfer; the caller sends the body behind it.

    `epoch` is the epoch of the body with its first offset. Raises ValueError for a body above
    `BODY_BYTES_MAX`.
    """
    if not 0 <= body_bytes <= BODY_BYTES_MAX:
        raise ValueError(f"a transfer of {body_bytes} bytes; expected 0 to {BODY_BYTES_MAX}")
    return _TRANSFER.pack(TRANSFER, body_bytes, offset, *epoch, confirm_offset)


class MasterSplitter:
    """Splits the bytes from a master into frames.

    A malformed frame ends the stream: `feed` raises ProtocolError, and so does every later call.
    Keeps at most one frame, that is `BODY_BYTES_MAX` and a head, besides the bytes of one `feed`.
    `feed` copies the bytes, so the caller may reuse the buffer.
    """

    __slots__ = ("_fault", "_rest")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._fault: ProtocolError | None = None

    @property
    def pending_bytes(self) -> int:
        """Bytes of the incomplete frame."""
        return len(self._rest)

    def feed(self, data: bytes | bytearray | memoryview) -> list[MasterHandshake | Transfer]:
        """Return the frames completed by the bytes."""
        if self._fault is not None:
            raise self._fault
        self._rest += data
        frames: list[MasterHandshake | Transfer] = []
        at = 0
        try:
            while len(self._rest) - at >= (size := self._size_at(at)):
                frames.append(self._frame(at, size))
                at += size
        except ProtocolError as fault:
            self._fault = fault
            self._rest.clear()
            raise
        del self._rest[:at]
        return frames

    def _size_at(self, at: int) -> int:
        """Return the size of the frame at a position, bytes; of its head while that is missing."""
        left = len(self._rest) - at
        if left < _STATE.size:
            return MASTER_HANDSHAKE_BYTES
        (state,) = _STATE.unpack_from(self._rest, at)
        if state not in (HANDSHAKE, TRANSFER):
            raise ProtocolError(f"a master sends the state {state}; expected 1 or 2")
        head = MASTER_HANDSHAKE_BYTES if state == HANDSHAKE else TRANSFER_BYTES
        if left < head:
            return head
        _, size, offset, _ = _MASTER_HANDSHAKE.unpack_from(self._rest, at)
        limit = _EPOCH.size * EPOCHS_SENT_MAX if state == HANDSHAKE else BODY_BYTES_MAX
        if offset < 0 or not 0 <= size <= limit or (state == HANDSHAKE and size % _EPOCH.size):
            raise ProtocolError(
                f"a master sends {size} bytes at offset {offset} in state {state};"
                f" expected 0 to {limit} bytes and an offset of at least 0"
            )
        return head + int(size)

    def _frame(self, at: int, size: int) -> MasterHandshake | Transfer:
        state, body_bytes, offset, epoch = _MASTER_HANDSHAKE.unpack_from(self._rest, at)
        body = bytes(self._rest[at + size - body_bytes : at + size])
        if state == HANDSHAKE:
            epochs: list[tuple[int, int]] = list(_EPOCH.iter_unpack(body))
            return MasterHandshake(offset, epochs)
        *_, start, confirm_offset = _TRANSFER.unpack_from(self._rest, at)
        return Transfer(offset, epoch, start, confirm_offset, body)


class SlaveReader:
    """Reads the frames of a slave; keeps less than one frame besides the bytes of one `feed`."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes | bytearray | memoryview) -> list[SlaveHandshake | Report]:
        """Return the frames completed by the bytes, oldest first.

        Raises ProtocolError for an unknown state, or a negative id or offset.
        """
        received = self._rest + bytes(data)
        frames: list[SlaveHandshake | Report] = []
        at = 0
        while len(received) - at >= REPORT_BYTES:
            (state,) = _STATE.unpack_from(received, at)
            if state == HANDSHAKE:
                if len(received) - at < SLAVE_HANDSHAKE_BYTES:
                    break
                _, last_file, learner, broker_id = _SLAVE_HANDSHAKE.unpack_from(received, at)
                frames.append(SlaveHandshake(broker_id, last_file == 1, learner == 1))
                at += SLAVE_HANDSHAKE_BYTES
                number = broker_id
            elif state == TRANSFER:
                _, number = _REPORT.unpack_from(received, at)
                frames.append(Report(number))
                at += REPORT_BYTES
            else:
                raise ProtocolError(f"a slave sends the state {state}; expected 1 or 2")
            if number < 0:
                raise ProtocolError(f"a slave sends {frames[-1]}; expected numbers of at least 0")
        self._rest = received[at:]
        return frames
