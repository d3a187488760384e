"""Waits of sends after the write to the log: for the disk, for slaves, for both, or for neither.

    flushDiskType=SYNC_FLUSH                      until the disk has the message
    brokerRole=SYNC_MASTER, inSyncReplicas >= 2   until inSyncReplicas copies have the message
    allAckInSyncStateSet=true under controllers   until all members of the set have the message

Both waits run at the same time; when both fail, the answer has the code of the slaves. Compatible
with RocketMQ's CommitLog.handleDiskFlushAndHA.
"""

from collections.abc import Callable
from typing import Protocol

from core_broker.config import BrokerConfig
from core_broker.remoting.bodies import HARuntimeInfo
from core_broker.remoting.codes import ResponseCode
from core_broker.store import MessageStore

_LATE_COPIES = frozenset({ResponseCode.SLAVE_NOT_AVAILABLE, ResponseCode.FLUSH_SLAVE_TIMEOUT})
#: Callback with SUCCESS once the promise of the settings holds. FLUSH_DISK_TIMEOUT,
#: SLAVE_NOT_AVAILABLE and FLUSH_SLAVE_TIMEOUT: the message is stored, and the promise is open.
#: SERVICE_NOT_AVAILABLE: the message is not stored.
Confirmed = Callable[[ResponseCode], None]


class Replicas(Protocol):
    """The copies of the log on other brokers (core_broker/ha)."""

    def when_replicated(self, end: int, then: Confirmed) -> None:
        """Call back when inSyncReplicas copies have all bytes before `end`, or cannot have."""

    @property
    def waiting(self) -> int:
        """Number of callbacks that wait for slaves."""

    def status(self) -> HARuntimeInfo:
        """Return the copies with their progress."""


class Durability:
    """Waits for disk and slaves by the settings in force."""

    def __init__(
        self,
        store: MessageStore,
        settings: Callable[[], BrokerConfig],
        replicas: Callable[[], Replicas | None],
    ) -> None:
        self._store = store
        self._settings = settings
        self._replicas = replicas

    @property
    def is_awaited(self) -> bool:
        """Whether answers to sends wait."""
        return is_awaited(self._settings())

    def must_wait(self, wait: str | None) -> bool:
        """Whether the answer to a message with this property WAIT waits for disk or slaves.

        A DLedger group ignores WAIT=false, as RocketMQ's DLedgerCommitLog does.
        """
        is_asked = wait != "false" or self._settings().enable_d_leger_commit_log
        return is_asked and self.is_awaited

    def may_be_lost(self, code: ResponseCode) -> bool:
        """Whether a stored message whose wait ended with a code may vanish with a failover."""
        return self._settings().has_elected_role and code in _LATE_COPIES

    def confirm(self, end: int, then: Confirmed) -> None:
        """Call back when disk and slaves have all bytes before `end`, or when the wait failed."""
        config, replicas = self._settings(), self._replicas()
        waits_for_disk = config.flush_disk_type == "SYNC_FLUSH"
        if replicas is None or not _needs_slaves(config):
            if waits_for_disk:
                self._store.on_flushed(end, lambda is_on_disk: then(_disk_code(is_on_disk)))
            else:
                then(ResponseCode.SUCCESS)
        elif waits_for_disk:
            both = _Both(then)
            self._store.on_flushed(end, both.flushed)
            replicas.when_replicated(end, both.replicated)
        else:
            replicas.when_replicated(end, then)


def is_awaited(config: BrokerConfig) -> bool:
    """Whether answers to sends wait for the disk or for slaves."""
    return config.flush_disk_type == "SYNC_FLUSH" or _needs_slaves(config)


def _needs_slaves(config: BrokerConfig) -> bool:
    if config.broker_role != "SYNC_MASTER":
        return False
    is_all_ack = config.enable_controller_mode and config.all_ack_in_sync_state_set
    return is_all_ack or config.enable_d_leger_commit_log or config.in_sync_replicas > 1


def _disk_code(is_on_disk: bool) -> ResponseCode:
    return ResponseCode.SUCCESS if is_on_disk else ResponseCode.FLUSH_DISK_TIMEOUT


class _Both:
    """Calls back once, after disk and slaves."""

    __slots__ = ("_disk", "_slaves", "_then")

    def __init__(self, then: Confirmed) -> None:
        self._then = then
        self._disk: ResponseCode | None = None
        self._slaves: ResponseCode | None = None

    def flushed(self, is_on_disk: bool) -> None:
        self._disk = _disk_code(is_on_disk)
        self._finish()

    def replicated(self, code: ResponseCode) -> None:
        self._slaves = code
        self._finish()

    def _finish(self) -> None:
        if self._disk is not None and self._slaves is not None:
            self._then(self._disk if self._slaves == ResponseCode.SUCCESS else self._slaves)
