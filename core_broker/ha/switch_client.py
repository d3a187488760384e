"""The slave's side of a replication connection under a controller: switch_slave.py on a socket.

The effects of the session are executed in order, each on the disk before the next. A truncation is
not interrupted by a role change, which waits for its end. With SYNC_FLUSH a report counts flushed
bytes only, unlike RocketMQ's: after a power cut of all machines any member may be elected.
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence

from core_broker.config import BrokerConfig
from core_broker.errors import StoreReadOnly
from core_broker.ha.client import HaClient
from core_broker.ha.faults import DivergedLog
from core_broker.ha.record_stream import RecordStream
from core_broker.ha.status import SlaveState
from core_broker.ha.switch_frames import SlaveHandshake
from core_broker.ha.switch_slave import (
    Append,
    BeginEpoch,
    Confirm,
    Effect,
    Send,
    SlaveSession,
    Truncate,
)
from core_broker.store import MessageStore

log = logging.getLogger(__name__)

#: Longest pauses after a failure and after a refusal, seconds: a role change may end the reason.
RETRY_S_MAX, REFUSED_RETRY_S = 2.0, 5.0

#: Truncates log, queues, index and tables: offset, and confirm offset.
TruncateStore = Callable[[int, int], Awaitable[None]]


class SwitchClient(HaClient):
    """Copies the log of the elected master until cancelled; `finish` must follow."""

    def __init__(
        self,
        store: MessageStore,
        broker_id: int,
        settings: Callable[[], BrokerConfig],
        ha_addr: Callable[[], str],
        truncate: TruncateStore,
        compare: Callable[[], Awaitable[None]],
        appended: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        """`compare` raises DivergedLog when the newest record is not that of the master."""
        super().__init__(store.replica, settings, ha_addr, self._flushed, appended, now_ms)
        self._store = store
        self._broker_id = broker_id
        self._truncate = truncate
        self._compare_records = compare
        self._must_compare = True
        self._truncating: asyncio.Task[None] | None = None
        self._is_flushing = False
        self._session = self._new_session()

    async def finish(self) -> None:
        """Wait for a truncation that is under way, after `run` was cancelled."""
        if self._truncating is not None:
            await asyncio.gather(self._truncating, return_exceptions=True)

    @property
    def _retry_s_max(self) -> float:
        return RETRY_S_MAX

    @property
    def _refused_retry_s(self) -> float:
        return REFUSED_RETRY_S

    @property
    def _guard(self) -> int:
        """Offset below which nothing may be truncated.

        Without allAckInSyncStateSet the confirm offset promises nothing.
        """
        return self._store.gate.confirmed if self._settings().all_ack_in_sync_state_set else 0

    def _new_session(self) -> SlaveSession:
        config, store = self._settings(), self._store
        handshake = SlaveHandshake(
            self._broker_id,
            is_from_last_file=config.sync_from_last_file,
            is_learner=config.async_learner,
        )
        return SlaveSession(
            handshake,
            store.epochs.cache,
            store.min_offset_physical,
            self._replica.end,
            self._guard,
        )

    def _begin(self, writer: asyncio.StreamWriter) -> None:
        self._session = self._new_session()
        self._must_compare = True
        self._stream = RecordStream(self._replica.end, self._replica.segment_size)
        for effect in self._session.start():
            assert isinstance(effect, Send)
            writer.write(effect.data)

    async def _received(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        end, confirmed = self._replica.end, self._store.gate.confirmed
        await self._execute(self._session.received(data), writer)
        self._note(SlaveState.TRANSFERRING, "")
        if (end, confirmed) != (self._replica.end, self._store.gate.confirmed):
            self._appended()

    async def _execute(self, effects: Sequence[Effect], writer: asyncio.StreamWriter) -> None:
        for effect in effects:
            match effect:
                case Send(data):
                    await self._compare_once()
                    writer.write(data)
                    self.status.last_write_ms = self._now_ms()
                case Truncate(offset):
                    await self._truncate_to(offset)
                    await self._execute(self._session.truncated(), writer)
                case BeginEpoch(epoch, start):
                    if not self._store.epochs.begin(epoch, start):
                        raise DivergedLog(f"epoch {epoch} cannot begin at offset {start}")
                case Append(offset, data, confirm_offset):
                    if self._replica.is_empty and self._stream.end == self._replica.end:
                        self._stream = self._stream_at(offset)
                    self._append(self._stream, data)
                    self._store.gate.confirm(confirm_offset)
                case Confirm(offset):
                    self._store.gate.confirm(offset)

    async def _compare_once(self) -> None:
        """Compare the newest record before the first report, which acknowledges the whole log.

        A master that lost the end of its log in a power cut, and went on in its epoch, has other
        records than its slaves under the same epoch.
        """
        if self._must_compare and not self._replica.is_empty:
            await self._compare_records()
        self._must_compare = False

    async def _truncate_to(self, offset: int) -> None:
        work = self._truncated(offset)
        self._truncating = asyncio.get_running_loop().create_task(work)
        # A role change that cancels this task must not leave the store half truncated.
        await asyncio.shield(self._truncating)
        self._stream = RecordStream(self._replica.end, self._replica.segment_size)

    async def _truncated(self, offset: int) -> None:
        try:
            await self._truncate(offset, self._guard)
        except Exception:
            if self._store.truncator.pending is not None:
                log.critical("The broker ends; its next start finishes the truncation")
                signal.raise_signal(signal.SIGTERM)
            raise

    def _report(self, writer: asyncio.StreamWriter) -> None:
        if writer.transport.get_write_buffer_size():
            return
        end = self._replica.end
        if self._is_sync and self._replica.flushed < end:
            self._report_once_flushed(writer)
            end = self._replica.flushed
        for effect in self._session.report(end):
            assert isinstance(effect, Send)
            self._reported = end
            writer.write(effect.data)
            self.status.last_write_ms = self._now_ms()

    # -- SYNC_FLUSH --

    @property
    def _is_sync(self) -> bool:
        return self._settings().flush_disk_type == "SYNC_FLUSH"

    def _report_once_flushed(self, writer: asyncio.StreamWriter) -> None:
        """Flush the bytes written so far, and report them on the same connection."""
        if self._is_flushing:
            return
        self._is_flushing = True

        def flushed(is_on_disk: bool) -> None:
            self._is_flushing = False
            if is_on_disk and self._writer is writer:
                self._report(writer)

        self._store.on_flushed(self._replica.end, flushed)

    async def _flushed(self) -> None:
        """Before a connection: flush the log, whose end is the first report.

        The handshake compares the logs. Raises StoreReadOnly when the log cannot be flushed.
        """
        if not self._is_sync:
            return
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def flushed(is_on_disk: bool) -> None:
            if not done.done():
                done.set_result(is_on_disk)

        self._store.on_flushed(self._replica.end, flushed)
        if not await done:
            raise StoreReadOnly("the commit log is not flushed in time; see syncFlushTimeout")
