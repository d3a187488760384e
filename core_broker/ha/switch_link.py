"""One connection from a slave under a controller: switch_master.py on a socket."""

import asyncio
from collections.abc import Callable

from core_broker.config import BrokerConfig
from core_broker.ha.slave_link import LinkOwner, SlaveLink
from core_broker.ha.switch_master import LogRange, MasterSession
from core_broker.store import MessageStore


class SwitchLink(SlaveLink):
    """The asyncio protocol of one connection. Event loop only."""

    def __init__(
        self,
        store: MessageStore,
        settings: Callable[[], BrokerConfig],
        owner: LinkOwner,
        clock_ms: Callable[[], int],
        confirm_offset: Callable[[], int],
    ) -> None:
        super().__init__(store, settings, owner, clock_ms)
        self._session = MasterSession(store.epochs.cache)
        self._confirm_offset = confirm_offset

    @property
    def slave_id(self) -> int | None:
        """The id of the slave at the controllers; None before its handshake."""
        return None if self._session.slave is None else self._session.slave.broker_id

    @property
    def caught_up_ms(self) -> int:
        """Time at which the slave last had the whole log, ms; 0 before."""
        return self._session.caught_up_ms

    @property
    def may_count(self) -> bool:
        """Whether the slave may be a member of the sync-state set: no learner, in this epoch."""
        return self._session.has_current_epoch()

    def tell_confirmed(self) -> None:
        """Tell the confirm offset to a slave that gets no bytes now."""
        transport = self._transport
        is_idle = self.is_transferring and self.sent >= self._store.max_offset_physical
        if transport is not None and is_idle and not self._is_paused:
            transport.write(self._heartbeat())

    def send(self) -> None:
        """Send the next bytes; a slave behind all epochs gets heartbeats only."""
        if self.is_transferring and self._session.has_epoch():
            super().send()

    @property
    def _log(self) -> LogRange:
        store = self._store
        return LogRange(
            store.min_offset_physical, store.max_offset_physical, store.replica.segment_size
        )

    def _received(self, data: bytes) -> None:
        session, acknowledged = self._session, self._session.acknowledged
        answers = session.received(data, self._log, self._clock_ms())
        if self._transport is not None and answers:
            self._transport.writelines(answers)
        if session.next_offset < 0:
            return
        self.acknowledged = session.acknowledged
        if not self.is_transferring:
            self.sent = session.next_offset
            self.is_transferring = True
            self._owner.requested(self, self.acknowledged)
            self.send()
        elif session.acknowledged > acknowledged:
            self._owner.acknowledged(self)

    def _write(self, transport: asyncio.Transport, data: bytes | bytearray, batch: int) -> None:
        session, view, begin = self._session, memoryview(data), self.sent
        parts: list[bytes | memoryview] = []
        end = begin + len(data)
        while self.sent < end:
            piece = session.next_piece(
                self._log, self._confirm_offset(), min(batch, end - self.sent), self._clock_ms()
            )
            assert piece is not None
            at = piece.offset - begin
            parts += (piece.header, view[at : at + piece.size])
            self.sent = session.next_offset
        transport.writelines(parts)

    def _heartbeat(self) -> bytes:
        return self._session.heartbeat(self._confirm_offset()) or b""
