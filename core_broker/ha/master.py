"""The master's side of replication: port, connections of slaves, and sends that wait for slaves.

Runs with the roles ASYNC_MASTER and SYNC_MASTER. Each slave has its own connection and progress, so
that a slow slave delays no other slave and no producer of an ASYNC_MASTER. Compatible with
RocketMQ's DefaultHAService; of its two rules for SYNC_MASTER (4.9: one slave; 5.x: inSyncReplicas
copies) the second holds, and a send without enough slaves is answered at once as in 4.9.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from core_broker.config import BrokerConfig
from core_broker.errors import CannotListen, GantryError
from core_broker.ha.admission import allowed_addresses, refusal
from core_broker.ha.slave_link import CHUNK_BYTES_MAX, SlaveLink
from core_broker.ha.waiting_sends import Replicated, WaitingSends
from core_broker.limits import PORT_MAX
from core_broker.remoting.bodies import HAConnectionRuntimeInfo, HARuntimeInfo
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.endpoint import Counters, Limits
from core_broker.remoting.frame_faults import FrameFaultLog
from core_broker.remoting.ports import Ports
from core_broker.remoting.tls_listener import Admission
from core_broker.remoting.tls_server import ServerTls
from core_broker.store import MessageStore

#: Delay of new messages without a waiting producer, seconds: several writes become one transfer.
#: The shorter one while the last transfer had less than BUSY_BYTES.
COALESCE_S, COALESCE_BUSY_S = 0.002, 0.01
BUSY_BYTES = 4 * 1024
#: New bytes that are sent without a further delay.
TRANSFER_BYTES = CHUNK_BYTES_MAX
#: Interval of timeouts, heartbeats and postponed transfers, seconds.
TICK_S = 0.1
#: Maximum wait of a stop for slaves that still copy the log, seconds.
DRAIN_S = 3.0
_DRAIN_CHECK_S = 0.02

log = logging.getLogger(__name__)


class ReplicationMaster:
    """Sends the log to slaves, and counts their acknowledgements. Event loop only.

    The port accepts slaves with and without TLS, as tls.server.mode says; slaves of RocketMQ speak
    no TLS. With haTlsNeedClientAuth every slave has a certificate. Raises SettingsError for an
    invalid haAllowedAddresses and for TLS files of no use.
    """

    def __init__(self, store: MessageStore, settings: Callable[[], BrokerConfig]) -> None:
        #: The port, 0 before `start`.
        self.port = 0
        self._closings: Counter[str] = Counter()
        #: Sends that did not get their acknowledgements, by response code.
        self.unreplicated: Counter[str] = Counter()
        self._store = store
        self._settings = settings
        self._addresses = allowed_addresses(settings())
        self._links: set[SlaveLink] = set()
        self._waits = WaitingSends()
        self._faults = FrameFaultLog("replication", faults="of faults of slaves")
        self._server: Ports | None = None
        self._tls = ServerTls(
            settings(), "replication", needs_certificates=settings().ha_tls_need_client_auth
        )
        #: Connections that were closed before their protocol began.
        self._counters = Counters()
        self._timer: asyncio.TimerHandle | None = None
        self._transfer: asyncio.TimerHandle | None = None
        #: End of the log at the last transfer, and whether that transfer had many new bytes.
        self._sent_end, self._is_busy = 0, False

    # -- life --

    async def start(self, listen_port: int) -> None:
        """Listen on haListenPort, by default on the port above `listen_port`.

        Where a default port is in use, any free port takes its place: slaves learn the port from
        the name server. Raises CannotListen for a port of the settings.
        """
        config = self._settings()
        address = config.ha_bind_address or config.bind_address
        wanted = config.ha_listen_port
        default = listen_port + 1 if config.listen_port and listen_port < PORT_MAX else 0
        try:
            self.port = await self._listen(address, wanted or default)
        except OSError as error:
            if wanted or not default:
                raise CannotListen("haListenPort", address, wanted, error) from None
            self.port = await self._listen(address, 0)
        if default and not wanted and self.port != default:
            log.warning(
                "Port %d is in use; slaves must connect to port %d. See haListenPort.",
                default,
                self.port,
            )
        self._store.write_listeners.append(self._written)

    async def _listen(self, address: str, port: int) -> int:
        config = self._settings()
        ports = Ports(
            self._accept,
            self._tls,
            Limits(idle_close_s=config.ha_housekeeping_interval / 1000),
            self._counters,
            Admission(
                lambda: self._settings().max_ha_connection_num,
                partial(refusal, self._addresses),
                displaces_silent=True,
            ),
        )
        bound = await ports.listen(address, port)
        self._server = ports
        return bound

    def _accept(self) -> SlaveLink:
        return SlaveLink(self._store, self._settings, self, monotonic_ms)

    async def stop(self) -> None:
        """Close the port, give slaves up to DRAIN_S for the rest of the log, and disconnect."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DRAIN_S
        # Acknowledgements set no event once nothing waits, so the stop polls them.
        while loop.time() < deadline and not self._is_drained():  # noqa: ASYNC110
            await asyncio.sleep(_DRAIN_CHECK_S)
        self._store.write_listeners.remove(self._written)
        for link in list(self._links):
            link.close()
        for timer in (self._timer, self._transfer):
            if timer is not None:
                timer.cancel()
        self._timer = self._transfer = None

    def _is_drained(self) -> bool:
        end = self._store.max_offset_physical
        return all(link.acknowledged >= end for link in self.slaves)

    # -- sends --

    def when_replicated(self, end: int, then: Replicated) -> None:
        """Call back when inSyncReplicas copies have all bytes before `end`, this one included.

        The code is SUCCESS, SLAVE_NOT_AVAILABLE when too few slaves are connected or within
        haSlaveFallbehindMax of `end`, or FLUSH_SLAVE_TIMEOUT after slaveTimeout. The callback may
        run before `when_replicated` returns.
        """
        config = self._settings()
        needed = self._needed(config)
        behind_max = config.ha_slave_fallbehind_max
        near = [link for link in self.slaves if end - link.acknowledged < behind_max]
        if len(near) < needed:
            self._answer(then, ResponseCode.SLAVE_NOT_AVAILABLE)
        else:
            self._wait(end, needed, then)

    def _needed(self, config: BrokerConfig) -> int:
        """Return the number of slaves that must have a message."""
        return config.in_sync_replicas - 1

    def _wait(self, end: int, slaves: int, then: Replicated) -> None:
        """Call back when `_settle` finds `slaves` acknowledgements of `end`."""

        def answer(code: ResponseCode) -> None:
            self._answer(then, code)

        deadline_ms = monotonic_ms() + self._settings().slave_timeout
        self._waits.add(end, slaves, deadline_ms, answer)
        self._settle()
        if self._waits:
            # The slaves get the bytes now, and not after COALESCE_S.
            self._send()
            self._tick_soon()

    @property
    def waiting(self) -> int:
        """Number of callbacks that wait for slaves."""
        return len(self._waits)

    def _answer(self, then: Replicated, code: ResponseCode) -> None:
        if code != ResponseCode.SUCCESS:
            self.unreplicated[code.name] += 1
        then(code)

    def _settle(self) -> None:
        if self._waits:
            self._waits.settle(sorted((link.acknowledged for link in self.slaves), reverse=True))

    # -- events of the store and of connections --

    @property
    def slaves(self) -> list[SlaveLink]:
        """The connections with a transfer."""
        return [link for link in self._links if link.is_transferring]

    def _written(self) -> None:
        """The log has grown."""
        if not self._links:
            return
        if self._store.max_offset_physical - self._sent_end >= TRANSFER_BYTES:
            self._send()
        elif self._transfer is None:
            delay_s = COALESCE_BUSY_S if self._is_busy else COALESCE_S
            self._transfer = asyncio.get_running_loop().call_later(delay_s, self._send)

    def _send(self) -> None:
        if self._transfer is not None:
            self._transfer.cancel()
            self._transfer = None
        end = self._store.max_offset_physical
        self._is_busy = end - self._sent_end >= BUSY_BYTES
        self._sent_end = end
        for link in self.slaves:
            link.send()

    def opened(self, link: SlaveLink) -> str:
        """A connection is open; returns the reason to close it, or ""."""
        if self._server is None:
            return "the broker is stopping"
        if reason := refusal(self._addresses, link.peer_host):
            return reason
        connections_max = self._settings().max_ha_connection_num
        if len(self._links) >= connections_max:
            # Connections without a request must not lock out slaves.
            silent = [each for each in self._links if not each.is_transferring]
            if not silent:
                return f"{connections_max} slaves are connected; see maxHaConnectionNum"
            oldest = min(silent, key=lambda each: each.read_ms)
            self._links.discard(oldest)
            oldest.close(GantryError("the connection made no request, and others need its place"))
        self._links.add(link)
        self._tick_soon()
        return ""

    def requested(self, link: SlaveLink, offset: int) -> None:
        """A slave has requested an offset, and the transfer begins."""
        end = self._store.max_offset_physical
        log.info(
            "slave %s connected with its log up to offset %d; the transfer begins at %d, %d bytes"
            " behind",
            *(link.peer, offset, link.sent, end - link.sent),
        )
        self._settle()

    def acknowledged(self, link: SlaveLink) -> None:
        """A slave has more of the log."""
        self._settle()

    def closed(self, link: SlaveLink, fault: GantryError | None) -> None:
        """A connection is lost, or closed because of a fault."""
        is_known = link in self._links
        self._links.discard(link)
        if fault is not None:
            self._closings["fault" if is_known else "refused"] += 1
            self._faults.write(link.peer, fault)
            return
        self._closings["lost"] += 1
        if link.acknowledged:
            behind = self._store.max_offset_physical - link.acknowledged
            log.warning("slave %s disconnected, %d bytes behind", link.peer, behind)

    # -- time --

    def _tick_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now_ms = monotonic_ms()
        self._waits.expire(now_ms)
        for link in list(self._links):
            link.tick(now_ms)
        self._faults.end_minute()
        if self._links or self._waits:
            self._tick_soon()

    # -- observation --

    @property
    def closings(self) -> dict[str, int]:
        """Closed connections by reason; silent, tls and plain closed before the protocol began."""
        early = self._counters
        return {
            "fault": self._closings["fault"],
            "lost": self._closings["lost"],
            "refused": self._closings["refused"] + early.refused,
            "silent": early.silent,
            "tls": early.tls_failed + early.tls_displaced + early.tls_unavailable,
            "plain": early.plain_refused,
        }

    def status(self) -> HARuntimeInfo:
        """Return the slaves with their progress, as GET_BROKER_HA_STATUS answers."""
        end, now_ms = self._store.max_offset_physical, monotonic_ms()
        behind_max = self._settings().ha_slave_fallbehind_max
        slaves = [
            HAConnectionRuntimeInfo(
                addr=link.peer,
                slave_ack_offset=link.acknowledged,
                diff=end - link.acknowledged,
                in_sync=end - link.acknowledged < behind_max,
                transferred_byte_in_second=link.pace.last_second_bytes(now_ms),
                transfer_from_where=link.sent,
            )
            for link in sorted(self.slaves, key=lambda each: each.peer)
        ]
        return HARuntimeInfo(
            master_commit_log_max_offset=end,
            in_sync_slave_nums=sum(slave.in_sync for slave in slaves),
            ha_connection_info=slaves,
        )


def monotonic_ms() -> int:
    """Milliseconds of the monotonic clock."""
    return time.monotonic_ns() // 1_000_000
