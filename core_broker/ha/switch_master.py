"""The master's side of a replication connection under a controller, without I/O.

    slave's handshake · own epochs · first report: begin of the transfer · transfers, reports

A transfer ends at the end of its epoch and of its segment. A report behind the sent bytes ends the
connection: it would confirm messages that nobody has. Compatible with RocketMQ's
AutoSwitchHAConnection from 5.1.1 on.
"""

from typing import NamedTuple

from core_broker.errors import ProtocolError
from core_broker.ha.switch_frames import (
    BODY_BYTES_MAX,
    SlaveHandshake,
    SlaveReader,
    encode_master_handshake,
    encode_transfer_header,
)
from core_broker.store.epochs import EpochCache


class LogRange(NamedTuple):
    """The range of the master's log at this moment."""

    begin: int
    end: int
    #: Size of a segment, bytes.
    segment_size: int


class Piece(NamedTuple):
    """The next bytes to send: the head of the transfer, and where its body is in the log."""

    header: bytes
    offset: int
    size: int


class MasterSession:
    """One connection of a slave; `epochs` is the master's own list, changed by its owner only."""

    def __init__(self, epochs: EpochCache) -> None:
        self._epochs = epochs
        self._reader = SlaveReader()
        #: The slave; None before its handshake.
        self.slave: SlaveHandshake | None = None
        #: All bytes before are in the slave's log; -1 before the first report.
        self.acknowledged = -1
        #: Offset of the next byte to send; -1 before the first report.
        self.next_offset = -1
        #: Time at which the slave last had the whole log, ms; 0 before.
        self.caught_up_ms = 0
        #: End of the log at a transfer that the slave has not acknowledged yet, and its time, ms.
        self._sent_end = -1
        self._sent_ms = 0

    def received(
        self, data: bytes | bytearray | memoryview, log: LogRange, now_ms: int
    ) -> list[bytes]:
        """Return the frames to send in answer to bytes from the slave.

        Raises ProtocolError for bytes outside of the protocol, and for reports behind the log or
        behind the sent bytes; the connection must be closed.
        """
        answers: list[bytes] = []
        for frame in self._reader.feed(data):
            if isinstance(frame, SlaveHandshake):
                if self.slave is not None:
                    raise ProtocolError("a slave sends a second handshake")
                self.slave = frame
                answers.append(encode_master_handshake(log.end, self._epochs.starts))
            elif self.slave is None:
                raise ProtocolError("a slave reports before its handshake")
            elif self.next_offset < 0:
                self._begin(self.slave, frame.offset, log)
                self._note(frame.offset, log, now_ms)
            else:
                self._note(frame.offset, log, now_ms)
        return answers

    def _begin(self, slave: SlaveHandshake, requested: int, log: LogRange) -> None:
        """Choose the first byte to send."""
        if requested > log.end:
            raise ProtocolError(
                f"slave {slave.broker_id} has the log up to {requested}, the master's ends at"
                f" {log.end}"
            )
        if requested:
            self.next_offset = requested
        elif slave.is_from_last_file:
            self.next_offset = max(log.begin, log.end - log.end % log.segment_size)
        else:
            self.next_offset = log.begin

    def _note(self, offset: int, log: LogRange, now_ms: int) -> None:
        if offset > self.next_offset:
            raise ProtocolError(
                f"a slave acknowledges offset {offset}, and was sent the bytes before"
                f" {self.next_offset}"
            )
        self.acknowledged = max(self.acknowledged, offset)
        if self.acknowledged >= log.end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
            self._sent_end = -1
        elif 0 <= self._sent_end <= self.acknowledged:
            self.caught_up_ms = max(self.caught_up_ms, self._sent_ms)
            self._sent_end = -1

    def next_piece(
        self, log: LogRange, confirm_offset: int, size_max: int, now_ms: int
    ) -> Piece | None:
        """Return the next transfer of at most `size_max` bytes; None when there is nothing to send.

        There is nothing either when the slave's offset is in no epoch of the master. The caller
        sends the header and the bytes of the log.
        """
        at = self.next_offset
        if at < 0 or at >= log.end or at < log.begin or (entry := self._epochs.at(at)) is None:
            return None
        segment_end = at - at % log.segment_size + log.segment_size
        end = min(log.end, segment_end, entry.end_offset, at + min(size_max, BODY_BYTES_MAX))
        self.next_offset = end
        if self._sent_end < 0:
            # Under load the slave never has the present end, but soon the end of this moment.
            self._sent_end, self._sent_ms = log.end, now_ms
        epoch = (entry.epoch, entry.start_offset)
        header = encode_transfer_header(at, end - at, epoch, confirm_offset)
        return Piece(header, at, end - at)

    def has_epoch(self) -> bool:
        """Return whether the next byte is in an epoch of the master."""
        return self._epochs.at(self.next_offset) is not None

    def heartbeat(self, confirm_offset: int) -> bytes | None:
        """Return a transfer without a body; None before the first report."""
        starts = self._epochs.starts
        if self.next_offset < 0 or not starts:
            return None
        entry = self._epochs.at(self.next_offset)
        epoch = (entry.epoch, entry.start_offset) if entry is not None else starts[0]
        return encode_transfer_header(self.next_offset, 0, epoch, confirm_offset)

    def has_current_epoch(self) -> bool:
        """Return whether the slave has the begin of the last epoch, and may count as a member."""
        if self.slave is None or self.slave.is_learner or self.acknowledged < 0:
            return False
        starts = self._epochs.starts
        return self.acknowledged >= (starts[-1][1] if starts else 0)
