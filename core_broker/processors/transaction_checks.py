"""Transaction checks: asking producers about pending half messages with code 39.

Every transactionCheckInterval the broker reads the half queue from the end of the last round. A
half message that is old enough and not named by an op message is stored again at the end of the
queue with its number of checks, and the broker sends a check to one producer of its group. After
transactionCheckMax checks, or after fileReservedTime, the half message is moved to
TRANS_CHECK_MAX_TIME_TOPIC.

Progress is stored as consumer offsets, and only after everything before is on disk, and on the
slaves that the settings promise: neither a power cut nor a failover may lose the new copy of a half
message while the progress is past the old copy. Compatible with RocketMQ's
TransactionalMessageCheckService and TransactionalMessageServiceImpl.
"""

import asyncio
import logging
from typing import NamedTuple, cast

from core_broker.errors import ConnectionClosed, ProtocolError, StoreBusy, StoreReadOnly
from core_broker.message.model import MessageExt, MessageInner
from core_broker.message.properties import PROPERTY_PRODUCER_GROUP, PROPERTY_UNIQ_KEY
from core_broker.message.record import decode_record, encode_record
from core_broker.message.topics import (
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANSACTION_GROUP,
)
from core_broker.message.transactions import ended_halves, moved_to
from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.processors.failed_messages import ensure_system_topic
from core_broker.processors.put_answers import message_id
from core_broker.processors.turn import Turn
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import CheckTransactionStateRequestHeader
from core_broker.state.half_messages import (
    HALF_QUEUE_ID,
    as_sent,
    discarded,
    op_message,
    real_queue,
    renewed,
    renewed_immune,
)
from core_broker.state.half_progress import CheckRules, HalfProgress, Verdict, judge
from core_broker.store import ColdRead, PutResult, PutStatus, QueueUnit

log = logging.getLogger(__name__)

#: Maximum time of a round, seconds. The next round continues where a round stopped.
ROUND_S_MAX = 60.0
#: Time between two readings of transactionCheckInterval, seconds, so that changes take effect.
SETTINGS_POLL_S = 1.0
#: Maximum op messages read in one event-loop iteration.
OPS_PER_TURN_MAX = 256
#: Maximum half messages read from the log in one event-loop iteration.
HALVES_READ_PER_TURN_MAX = 64
#: Maximum half messages examined, settled or not, in one event-loop iteration.
HALVES_SEEN_PER_TURN_MAX = 10_000
#: Maximum producers of a group tried for one check, when connections turn out to be closed.
PRODUCERS_TRIED_MAX = 3

_HOUR_MS = 3_600_000
_NEVER_STORABLE = frozenset({PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED})


class _Renewed(NamedTuple):
    """A half message that was stored again; `is_check` when its producer gets a check."""

    half: MessageExt
    inner: MessageInner
    stored: PutResult
    is_check: bool


class TransactionChecks:
    """Runs the rounds of checks."""

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        self._ctx = ctx
        self._turn = turn
        self._progress: HalfProgress | None = None
        #: Groups without a connected producer in this round.
        self._absent: set[str] = set()
        #: Data that the last step needed and that was not in memory.
        self._cold: ColdRead | None = None

    async def run(self) -> None:
        """Check for ever, from the saved progress on.

        Under controllers each mastership is a run: another master may have changed both queues.
        """
        self._progress = None
        while True:
            await self._pause()
            try:
                await self.check()
            except (StoreReadOnly, StoreBusy, OSError) as error:
                log.warning("transaction checks are paused: %s", error)
            except Exception:
                log.exception("checking half messages failed; retrying")

    async def _pause(self) -> None:
        """Wait for the next round; transactionCheckInterval may change meanwhile."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            left_s = began + self._ctx.config.transaction_check_interval / 1000 - loop.time()
            if left_s <= 0:
                return
            await asyncio.sleep(min(left_s, SETTINGS_POLL_S))

    async def check(self) -> None:
        """Run one round."""
        if self._ctx.store.queue_range(TRANS_HALF_TOPIC, HALF_QUEUE_ID)[1] == 0:
            return
        ensure_system_topic(self._ctx, TRANS_HALF_TOPIC)
        progress = self._progress = self._progress or self._restored()
        began_ms = self._ctx.now_ms()
        loop = asyncio.get_running_loop()
        end = loop.time() + ROUND_S_MAX
        self._absent.clear()
        while True:
            await self._read_ops(progress)
            # No await between the two calls, so `progress` knows all ended transactions.
            is_over = self._check_some(progress, began_ms)
            cold, self._cold = self._cold, None
            if cold is not None:
                await self._ctx.store.cold_reads.warmed(cold)
            elif is_over:
                break
            if loop.time() > end:
                break
            await asyncio.sleep(0)
        if self._absent:
            groups = ", ".join(sorted(self._absent)[:10])
            log.warning("half messages wait for producers of %s; none is connected", groups)
        await self._save(progress)

    def _restored(self) -> HalfProgress:
        """The saved progress, limited to the offsets that the queues contain."""
        offsets = []
        for topic in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC):
            first, end = self._ctx.store.queue_range(topic, HALF_QUEUE_ID)
            saved = self._ctx.offsets.committed(TRANSACTION_GROUP, topic, HALF_QUEUE_ID)
            offsets.append(min(max(first if saved is None else saved, first), end))
        return HalfProgress(*offsets)

    async def _read_ops(self, progress: HalfProgress) -> None:
        """Read new op messages to the end of the op queue; the last part is read without await."""
        store = self._ctx.store
        while True:
            # Op messages of this event-loop iteration become readable.
            self._turn.end()
            first_half, half_end = store.queue_range(TRANS_HALF_TOPIC, HALF_QUEUE_ID)
            first_op, _ = store.queue_range(TRANS_OP_HALF_TOPIC, HALF_QUEUE_ID)
            progress.begin_at(first_half, first_op)
            try:
                if self._read_some_ops(progress, half_end) < OPS_PER_TURN_MAX:
                    return
            except ColdRead as cold:
                await store.cold_reads.warmed(cold)
            else:
                await asyncio.sleep(0)

    def _read_some_ops(self, progress: HalfProgress, half_end: int) -> int:
        """Read the next op messages; returns their number."""
        units = self._ctx.store.queue_units(
            TRANS_OP_HALF_TOPIC, HALF_QUEUE_ID, progress.next_op, OPS_PER_TURN_MAX
        )
        for unit in units:
            op, offset = self._read(TRANS_OP_HALF_TOPIC, unit), progress.next_op
            if op is None or (op.topic, op.queue_offset) != (TRANS_OP_HALF_TOPIC, offset):
                self._ctx.store.repair_unit(TRANS_OP_HALF_TOPIC, HALF_QUEUE_ID, offset)
                progress.read_op((), half_end)
            else:
                progress.read_op(ended_halves(op), half_end, moved_to(op))
        return len(units)

    def _check_some(self, progress: HalfProgress, began_ms: int) -> bool:
        """Examine the next half messages; True when the round is over.

        Progress advances only after the copies of half messages were written.
        """
        end = self._ctx.store.queue_range(TRANS_HALF_TOPIC, HALF_QUEUE_ID)[1]
        offset = progress.next_half
        renewals: list[_Renewed] = []
        stop = min(end, offset + HALVES_SEEN_PER_TURN_MAX)
        reads = 0
        is_over = stop == end
        while offset < stop:
            if not progress.is_settled(offset):
                reads += 1
                try:
                    half = self._half_at(offset)
                except ColdRead as cold:
                    self._cold = cold
                    break
                if half is not None and not self._handle(half, began_ms, renewals):
                    is_over = True
                    break
                if reads >= HALVES_READ_PER_TURN_MAX:
                    offset += 1
                    is_over = offset == end
                    break
            offset += 1
        self._turn.end()
        for renewal in renewals:
            if renewal.is_check:
                self._send_check(renewal)
        progress.pass_to(offset)
        return is_over

    def _handle(self, half: MessageExt, began_ms: int, renewals: list[_Renewed]) -> bool:
        """Discard, renew or keep one half message; False when the round must stop before it."""
        config = self._ctx.config
        rules = CheckRules(
            config.transaction_time_out,
            config.transaction_check_max,
            config.file_reserved_time * _HOUR_MS,
        )
        verdict = judge(half, self._ctx.now_ms(), began_ms, rules)
        if verdict is Verdict.WAIT:
            return False
        if verdict is Verdict.DISCARD:
            return self._discard(half)
        is_check = verdict is Verdict.CHECK
        inner = renewed(half) if is_check else renewed_immune(half)
        result = self._put(inner)
        if result.status in _NEVER_STORABLE:
            return self._discard(half)
        if result.status is not PutStatus.PUT_OK:
            return False
        ctx = self._ctx
        self._put(op_message(half, ctx.host, ctx.now_ms(), result.offset_logical))
        renewals.append(_Renewed(half, inner, result, is_check))
        return True

    def _discard(self, half: MessageExt) -> bool:
        ensure_system_topic(self._ctx, TRANS_CHECK_MAX_TIME_TOPIC)
        result = self._put(discarded(half))
        log.error(
            "the transaction of message %s for %s was never ended; moving the message to %s: %s",
            half.msg_id,
            real_queue(half),
            TRANS_CHECK_MAX_TIME_TOPIC,
            result.status.value,
        )
        return result.status is PutStatus.PUT_OK or result.status in _NEVER_STORABLE

    def _send_check(self, renewal: _Renewed) -> None:
        """Send a check to one producer of the group."""
        group = renewal.half.properties.get(PROPERTY_PRODUCER_GROUP, "")
        check = self._check_request(renewal)
        for _ in range(PRODUCERS_TRIED_MAX):
            member = self._ctx.producers.next_of(group)
            if member is None:
                break
            try:
                cast("Connection", member.channel).send(check)
            except ConnectionClosed:
                continue
            return
        self._absent.add(group)

    def _check_request(self, renewal: _Renewed) -> RemotingCommand:
        half, stored = renewal.half, renewal.stored
        uniq_key = half.properties.get(PROPERTY_UNIQ_KEY)
        header = CheckTransactionStateRequestHeader(
            tran_state_table_offset=stored.offset_logical,
            commit_log_offset=stored.offset_physical,
            msg_id=uniq_key,
            transaction_id=uniq_key,
            offset_msg_id=message_id(self._ctx.host, stored.offset_physical),
        )
        inner = renewal.inner
        topic, queue_id = real_queue(half) or (inner.topic, inner.queue_id)
        record = encode_record(
            as_sent(half, inner.properties, topic, queue_id),
            queue_offset=stored.offset_logical,
            physical_offset=stored.offset_physical,
            store_timestamp=half.store_timestamp,
        )
        return RemotingCommand.request(RequestCode.CHECK_TRANSACTION_STATE, header, record)

    async def _save(self, progress: HalfProgress) -> None:
        """Save the progress of the round once all messages before are on disk and on slaves."""
        offsets = {TRANS_HALF_TOPIC: progress.next_half, TRANS_OP_HALF_TOPIC: progress.needed_op}
        ctx = self._ctx
        saved = {
            topic: ctx.offsets.committed(TRANSACTION_GROUP, topic, HALF_QUEUE_ID)
            for topic in offsets
        }
        if saved == offsets or not await self._flushed():
            return
        code = await self._turn.confirmation()
        is_stored = code != ResponseCode.SERVICE_NOT_AVAILABLE
        if not is_stored or self._turn.durability.may_be_lost(code):
            return  # a later round saves the progress
        for topic, offset in offsets.items():
            ctx.offsets.commit(TRANSACTION_GROUP, topic, HALF_QUEUE_ID, offset)
        ctx.saver.save(ConfigTable.OFFSETS)

    async def _flushed(self) -> bool:
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def flushed(is_on_disk: bool) -> None:
            if not done.done():
                done.set_result(is_on_disk)

        self._ctx.store.on_flushed(self._ctx.store.max_offset_physical, flushed)
        return await done

    def _half_at(self, offset: int) -> MessageExt | None:
        units = self._ctx.store.queue_units(TRANS_HALF_TOPIC, HALF_QUEUE_ID, offset, 1)
        half = self._read(TRANS_HALF_TOPIC, units[0]) if units else None
        if half is None or (half.topic, half.queue_offset) != (TRANS_HALF_TOPIC, offset):
            self._ctx.store.repair_unit(TRANS_HALF_TOPIC, HALF_QUEUE_ID, offset)
            log.error("half message %d is unreadable and is skipped", offset)
            return None
        return half

    def _read(self, topic: str, unit: QueueUnit) -> MessageExt | None:
        record = self._ctx.store.read_at(unit.offset_physical, unit.size)
        self._ctx.statistics.got(TRANSACTION_GROUP, topic, HALF_QUEUE_ID, 1, unit.size, 0)
        try:
            return decode_record(record) if record is not None else None
        except ProtocolError:
            return None

    def _put(self, inner: MessageInner) -> PutResult:
        result = self._ctx.store.put(inner)
        if result.status is PutStatus.PUT_OK:
            self._ctx.statistics.put(inner.topic, inner.queue_id, result.size)
        return result
