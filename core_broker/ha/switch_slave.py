"""The slave's side of a replication connection under a controller, without I/O.

    connect · handshake · master's epochs: compare, truncate · report · transfers: append, report

The session returns effects; the caller executes them in order, each one durable before the next:
a truncation before the first report, a new epoch before its first byte. A truncation is never asked
for below the confirm offset, and an unexpected byte ends the session. Compatible with RocketMQ's
AutoSwitchHAClient from 5.1.1 on.
"""

from dataclasses import dataclass

from core_broker.errors import ProtocolError
from core_broker.ha.faults import DivergedLog
from core_broker.ha.switch_frames import (
    MasterHandshake,
    MasterSplitter,
    SlaveHandshake,
    Transfer,
    encode_report,
    encode_slave_handshake,
)
from core_broker.store.epochs import NO_POINT, EpochCache, consistent_point


@dataclass(frozen=True, slots=True)
class Send:
    """Send bytes to the master, in one write."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    """Truncate log and epochs, then call `truncated`."""

    offset: int


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """Save a new epoch before its first byte, in place of empty epochs from its start on."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class Append:
    """Append bytes of the master's log. All replicas have the bytes before `confirm_offset`."""

    offset: int
    data: bytes
    confirm_offset: int


@dataclass(frozen=True, slots=True)
class Confirm:
    """All replicas have the bytes before an offset."""

    offset: int


Effect = Send | Truncate | BeginEpoch | Append | Confirm


class SlaveSession:
    """One connection of a slave. `epochs` is the slave's own list, which the caller changes.

    `begin` and `end` are the range of the own log, `confirm_offset` the end of the messages that
    replicas confirmed.
    """

    def __init__(
        self, handshake: SlaveHandshake, epochs: EpochCache, begin: int, end: int, confirm: int
    ) -> None:
        self._handshake = handshake
        #: The epochs with bytes in the own log.
        self._epochs = EpochCache(each for each in epochs.starts if each[1] < end)
        self._is_empty = begin == end
        #: True with epochs without a byte, which the master may not have.
        self._has_empty_epochs = len(self._epochs) < len(epochs)
        #: Offset of the next byte from the master.
        self._expected = end
        self._confirm = confirm
        self._splitter = MasterSplitter()
        self._has_handshake = False
        self._truncating = False

    def start(self) -> list[Effect]:
        """Return the handshake, to be sent first."""
        return [Send(encode_slave_handshake(self._handshake))]

    def received(self, data: bytes | bytearray | memoryview) -> list[Effect]:
        """Return the effects of bytes from the master.

        Raises ProtocolError for bytes outside of the protocol, and DivergedLog when the logs have
        no common point, or when confirmed messages differ; the connection must be closed.
        """
        effects: list[Effect] = []
        for frame in self._splitter.feed(data):
            if isinstance(frame, MasterHandshake):
                effects += self._compare(frame)
            else:
                effects += self._take(frame)
        return effects

    def truncated(self) -> list[Effect]:
        """Go on after a truncation: return the first report."""
        assert self._truncating
        self._truncating = False
        return self.report(0 if self._is_empty else self._expected)

    def report(self, end: int) -> list[Effect]:
        """Return a report of the end of the written log, also as a sign of life."""
        if not self._has_handshake or self._truncating:
            return []
        return [Send(encode_report(end))]

    # -- handshake --

    def _compare(self, master: MasterHandshake) -> list[Effect]:
        if self._has_handshake:
            raise ProtocolError("a master sends a second handshake")
        self._has_handshake = True
        try:
            epochs = EpochCache(master.epochs)
        except ValueError as error:
            raise ProtocolError(f"the epochs of the master are out of order: {error}") from None
        if self._is_empty:
            self._epochs = EpochCache()
            # The master chooses the begin. Epochs of a lost log must not stay.
            return self._truncate(self._expected) if self._has_empty_epochs else self.report(0)
        if not len(self._epochs):
            raise DivergedLog("this broker has messages, but no epochs to compare them")
        point = consistent_point(self._epochs, self._expected, epochs, master.end)
        if point == NO_POINT:
            raise DivergedLog(
                f"no epoch of this broker, {self._epochs.starts[-3:]}, is one of the master's"
            )
        if point < self._confirm:
            raise DivergedLog(
                f"both logs are equal up to {point} only, and replicas confirmed the messages of"
                f" this broker up to {self._confirm}"
            )
        if point == self._expected and not self._has_empty_epochs:
            return self.report(point)
        return self._truncate(point)

    def _truncate(self, point: int) -> list[Effect]:
        self._expected = point
        self._epochs.truncate_suffix(point)
        self._truncating = True
        return [Truncate(point)]

    # -- transfer --

    def _take(self, transfer: Transfer) -> list[Effect]:
        if not self._has_handshake or self._truncating:
            raise ProtocolError("a master sends bytes before the first report")
        if not transfer.body:
            return self._heartbeat(transfer)
        effects: list[Effect] = []
        if self._is_empty:
            self._expected, self._is_empty = transfer.offset, False
        if transfer.offset != self._expected:
            raise DivergedLog(
                f"the master sends the bytes from offset {transfer.offset} on, and the log of this"
                f" broker ends at {self._expected}"
            )
        end = transfer.offset + len(transfer.body)
        effects += self._epoch_of(transfer, end)
        self._expected = end
        # A Java master may confirm bytes that it sends later.
        confirm = max(self._confirm, min(transfer.confirm_offset, end))
        self._confirm = confirm
        effects.append(Append(transfer.offset, transfer.body, confirm))
        return effects

    def _heartbeat(self, heartbeat: Transfer) -> list[Effect]:
        if not self._is_empty and heartbeat.offset != self._expected:
            raise DivergedLog(
                f"the master goes on at offset {heartbeat.offset}, and the log of this broker ends"
                f" at {self._expected}"
            )
        confirm = min(heartbeat.confirm_offset, self._expected)
        if self._is_empty or confirm <= self._confirm:
            return []
        self._confirm = confirm
        return [Confirm(confirm)]

    def _epoch_of(self, transfer: Transfer, end: int) -> list[Effect]:
        """Return the epoch to save before the bytes of a transfer.

        A Java master gives the last bytes of an epoch the number of the next epoch, with its start.
        """
        last = self._epochs.starts[-1] if len(self._epochs) else None
        found = (transfer.epoch, transfer.epoch_start)
        if found == last:
            return []
        is_first = last is None
        is_here = transfer.offset <= transfer.epoch_start or is_first
        if not is_here or transfer.epoch_start > end or not self._epochs.append(*found):
            raise DivergedLog(
                f"the master sends bytes of epoch {found[0]}, which begins at {found[1]}; the last"
                f" epoch of this broker is {last}, and its log ends at {transfer.offset}"
            )
        return [BeginEpoch(*found)]
