"""The master's side of replication under a controller: sync-state set, confirm offset, waits.

A member of the sync-state set has every acknowledged message (sync_states.py). With
allAckInSyncStateSet a send waits for all members, and readers see confirmed messages only; without,
a send waits for inSyncReplicas copies. A slave joins when it has all confirmed bytes, and leaves
when its connection is lost or when it lags for haMaxTimeSlaveNotCatchup. The port is open in every
role; connections are accepted by a master only. Compatible with RocketMQ's AutoSwitchHAService.
"""

import asyncio
import logging
from collections.abc import Callable

from core_broker.config import BrokerConfig
from core_broker.errors import GantryError
from core_broker.ha.master import ReplicationMaster, monotonic_ms
from core_broker.ha.slave_link import SlaveLink
from core_broker.ha.switch_link import SwitchLink
from core_broker.ha.sync_states import SyncStates
from core_broker.ha.waiting_sends import Replicated
from core_broker.remoting.codes import ResponseCode
from core_broker.store import MessageStore

#: Maximum distance of a slave that begins to join, bytes: sends wait for the rest.
JOIN_BYTES_MAX = 1024 * 1024
#: Time to get the rest, and pause before the next attempt, ms.
JOIN_MS, JOIN_PAUSE_MS = 2_000, 5_000
#: Time for members of the set to connect to a new master before they leave the set, ms.
CONNECT_MS = 5_000
#: Maximum brokers that join, or wait for their next attempt: a peer may invent ids.
ATTEMPTS_MAX = 64
#: Delay of the confirm offset to slaves that get no bytes, seconds.
CONFIRM_S = 0.05

log = logging.getLogger(__name__)


class SwitchReplication(ReplicationMaster):
    """Sends the log to slaves while this broker is the elected master. Event loop only.

    `members_changed` is called when the controllers should hear of another set.
    """

    def __init__(self, store: MessageStore, settings: Callable[[], BrokerConfig]) -> None:
        super().__init__(store, settings)
        self.members_changed: Callable[[], None] = _nothing
        #: The sync-state set; None on a slave.
        self.states: SyncStates | None = None
        #: Broker → end of its attempt to join, and begin of the next one, ms.
        self._attempts: dict[int, tuple[int, int]] = {}
        self._led_ms = 0
        self._confirming: asyncio.TimerHandle | None = None

    # -- role --

    def lead(self, states: SyncStates) -> None:
        """Accept slaves in a new epoch; the epoch is on the disk, and no send has come yet."""
        self._close_links("a new epoch begins")
        self.states = states
        self._led_ms = monotonic_ms()
        self._attempts.clear()
        self._advance()
        self._tick_soon()

    def resign(self) -> None:
        """Disconnect the slaves; sends that wait are answered as not available."""
        self.states = None
        self._close_links("this broker is no longer the master")
        self._waits.abandon(ResponseCode.SERVICE_NOT_AVAILABLE)

    def _close_links(self, reason: str) -> None:
        for link in list(self._links):
            link.close(GantryError(reason))

    async def stop(self) -> None:
        """Close the port, give slaves the rest of the log, and disconnect."""
        await super().stop()
        if self._confirming is not None:
            self._confirming.cancel()

    # -- sends --

    @property
    def has_enough_members(self) -> bool:
        """Whether the sync-state set has minInSyncReplicas members."""
        states = self.states
        return states is not None and states.size >= self._settings().min_in_sync_replicas

    @property
    def confirm_offset(self) -> int:
        """The confirm offset that slaves are told: without all-ack, the end of the log."""
        if self._is_all_ack:
            return self._store.gate.confirmed
        return self._store.max_offset_physical

    @property
    def _is_all_ack(self) -> bool:
        return self._settings().all_ack_in_sync_state_set

    def when_replicated(self, end: int, then: Replicated) -> None:
        """Call back when all members of the set, or inSyncReplicas copies, have the bytes.

        Codes and times are those of ReplicationMaster.
        """
        if self.states is None:
            self._answer(then, ResponseCode.SERVICE_NOT_AVAILABLE)
        elif self._is_all_ack:
            self._wait(end, 1, then)
        else:
            super().when_replicated(end, then)

    def _needed(self, config: BrokerConfig) -> int:
        needed = config.in_sync_replicas
        if config.enable_auto_in_sync_replicas and self.states is not None:
            needed = max(min(needed, self.states.size), config.min_in_sync_replicas)
        return needed - 1

    def _settle(self) -> None:
        if not self._is_all_ack:
            super()._settle()
        elif self.has_enough_members:
            # A set that has lost members confirms with fewer copies than were promised.
            self._waits.settle([self._store.gate.confirmed])

    # -- events --

    def _accept(self) -> SwitchLink:
        return SwitchLink(
            self._store, self._settings, self, monotonic_ms, lambda: self.confirm_offset
        )

    def opened(self, link: SlaveLink) -> str:
        """A connection is open; returns the reason to close it, or ""."""
        if self.states is None:
            return "this broker is no master; its slaves ask the controllers for another one"
        return super().opened(link)

    def requested(self, link: SlaveLink, offset: int) -> None:
        """A slave has told its end: it takes the place of its earlier connection."""
        for other in self._by_id:
            if other is not link and _id_of(other) == _id_of(link):
                other.close(GantryError("the slave has connected again"))
        super().requested(link, offset)
        self.acknowledged(link)

    def acknowledged(self, link: SlaveLink) -> None:
        """A slave has more of the log."""
        states, broker_id = self.states, _id_of(link)
        if states is not None and broker_id is not None and isinstance(link, SwitchLink):
            if link.may_count:
                states.acknowledged(broker_id, link.acknowledged)
            if broker_id in states.members:
                self._judge(link, broker_id, states)
            self._consider(link, broker_id, states)
        self._advance()
        super().acknowledged(link)

    def closed(self, link: SlaveLink, fault: GantryError | None) -> None:
        """A connection is lost: its broker leaves the set at once."""
        super().closed(link, fault)
        if self._server is None:
            return  # a master that stops must leave its set to the next one
        states, broker_id = self.states, _id_of(link)
        is_gone = all(_id_of(other) != broker_id for other in self._by_id)
        if states is not None and broker_id is not None and is_gone:
            states.leave(broker_id)
            self._advance()

    def _written(self) -> None:
        super()._written()
        states = self.states
        if states is not None and states.is_alone:
            self._advance()

    @property
    def _by_id(self) -> list[SwitchLink]:
        return [link for link in self.slaves if isinstance(link, SwitchLink)]

    # -- the set --

    def _judge(self, link: SwitchLink, broker_id: int, states: SyncStates) -> None:
        """Let a member leave that lost confirmed bytes with its disk; let one stay that is back."""
        if not link.may_count or link.acknowledged < self._store.gate.confirmed:
            states.leave(broker_id)
        elif states.is_leaving(broker_id) and not self._is_late(link, monotonic_ms()):
            states.stay(broker_id)

    def _consider(self, link: SwitchLink, broker_id: int, states: SyncStates) -> None:
        """Let a slave that is close to the end of the log begin to join."""
        now_ms, gate = monotonic_ms(), self._store.gate
        end = self._store.max_offset_physical
        if broker_id in states.counted or not link.may_count:
            return
        if end - link.acknowledged > JOIN_BYTES_MAX:
            return
        _, next_ms = self._attempts.get(broker_id, (0, 0))
        if now_ms < next_ms or not self._has_attempt(broker_id, now_ms):
            return
        if states.is_alone:
            gate.confirm(end)
        self._attempts[broker_id] = (now_ms + JOIN_MS, now_ms + JOIN_MS + JOIN_PAUSE_MS)
        states.begin_join(broker_id, gate.confirmed)
        states.acknowledged(broker_id, link.acknowledged)
        self._tick_soon()

    def _has_attempt(self, broker_id: int, now_ms: int) -> bool:
        """Whether a broker may begin to join; forgets attempts that are over."""
        attempts = self._attempts
        for other in [each for each, (_, next_ms) in attempts.items() if next_ms <= now_ms]:
            if self.states is None or other not in self.states.joining:
                del attempts[other]
        return broker_id in attempts or len(attempts) < ATTEMPTS_MAX

    def _tick(self) -> None:
        super()._tick()
        states, now_ms = self.states, monotonic_ms()
        if states is None:
            return
        for joining in list(states.joining):
            if now_ms >= self._attempts[joining][0]:
                states.drop_join(joining)
        for link in self._by_id:
            broker_id = link.slave_id
            if broker_id is None:
                continue
            self._consider(link, broker_id, states)
            if self._is_late(link, now_ms):
                states.leave(broker_id)
        if now_ms - self._led_ms > CONNECT_MS:
            connected = {link.slave_id for link in self._by_id}
            for member in states.members:
                if member not in connected:
                    states.leave(member)
        self._advance()
        self._tick_soon()

    def _is_late(self, link: SwitchLink, now_ms: int) -> bool:
        """Whether a slave did not have the whole log for haMaxTimeSlaveNotCatchup."""
        if link.acknowledged >= self._store.max_offset_physical:
            return False
        slow_ms = self._settings().ha_max_time_slave_not_catchup
        return now_ms - max(link.caught_up_ms, link.opened_ms) > slow_ms

    def changed(self) -> None:
        """The controllers have another set."""
        self._advance()

    def _advance(self) -> None:
        """Advance the confirm offset, and what depends on it."""
        states, gate = self.states, self._store.gate
        if states is None:
            return
        if states.is_alone or not self._is_all_ack:
            gate.open()
        else:
            gate.close()
        before = gate.confirmed
        # One link per broker: an older one has less.
        acknowledged = {link.slave_id or 0: link.acknowledged for link in self._by_id}
        gate.confirm(states.confirmed(acknowledged, self._store.max_offset_physical, before))
        if gate.confirmed > before:
            self._settle()
            if self._confirming is None and self._links:
                loop = asyncio.get_running_loop()
                self._confirming = loop.call_later(CONFIRM_S, self._tell_confirmed)
        if states.must_report:
            self.members_changed()

    def _tell_confirmed(self) -> None:
        self._confirming = None
        for link in self._by_id:
            link.tell_confirmed()


def _id_of(link: SlaveLink) -> int | None:
    return link.slave_id if isinstance(link, SwitchLink) else None


def _nothing() -> None:
    """Nobody reports the set."""
