"""Asking producers about half messages that nobody has ended: code 39.

Every transactionCheckInterval the half queue is read from where the last round stopped. What no op
message names and is old enough is stored again at the end of the queue, which counts the checks,
and one producer of its group is asked. After transactionCheckMax checks, or fileReservedTime, a
message is moved to TRANS_CHECK_MAX_TIME_TOPIC.

Progress is kept as consumer offsets, and only once everything stored before is on the disk: a power
cut must not take the new copy of a half message while the old one counts as passed. Compatible with
RocketMQ's TransactionalMessageCheckService and TransactionalMessageServiceImpl.
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
from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.processors.failed_messages import ensure_system_topic
from core_broker.processors.put_answers import message_id
from core_broker.processors.turn import Turn
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import CheckTransactionStateRequestHeader
from core_broker.state.half_ledger import CheckRules, HalfLedger, Verdict, judge
from core_broker.state.half_messages import (
    HALF_QUEUE_ID,
    as_sent,
    checked_again,
    ended_halves,
    given_up,
    moved_to,
    op_message,
    real_place,
    shielded_again,
)
from core_broker.store import ColdRead, PutResult, PutStatus, QueueUnit

log = logging.getLogger(__name__)

#: A round that takes longer goes on with the next one.
ROUND_S_MAX = 60.0
#: A changed transactionCheckInterval is noticed after this time.
SETTINGS_LOOK_S = 1.0
#: What one turn of the event loop reads and stores.
OPS_PER_TURN_MAX = 256
HALVES_READ_PER_TURN_MAX = 64
HALVES_SEEN_PER_TURN_MAX = 10_000
#: Producers of a group that are tried, when connections turn out to be closed.
PRODUCERS_TRIED_MAX = 3

_HOUR_MS = 3_600_000
_NEVER_STORABLE = frozenset({PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED})


class _Again(NamedTuple):
    """A half message that was stored again; `is_asked` when its producer is to be asked."""

    half: MessageExt
    inner: MessageInner
    stored: PutResult
    is_asked: bool


class TransactionChecks:
    """Settles the half messages in rounds."""

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        self._ctx = ctx
        self._turn = turn
        self._ledger: HalfLedger | None = None
        #: Groups nobody could be asked of, in this round.
        self._absent: set[str] = set()
        #: What the last step had to read and was not in memory.
        self._cold: ColdRead | None = None

    async def run(self) -> None:
        """Check for ever."""
        while True:
            await self._pause()
            try:
                await self.check()
            except (StoreReadOnly, StoreBusy, OSError) as error:
                log.warning("half messages have to wait: %s", error)
            except Exception:
                log.exception("checking half messages failed; trying again")

    async def _pause(self) -> None:
        """Wait for the next round, whose time may be changed meanwhile."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            left_s = began + self._ctx.config.transaction_check_interval / 1000 - loop.time()
            if left_s <= 0:
                return
            await asyncio.sleep(min(left_s, SETTINGS_LOOK_S))

    async def check(self) -> None:
        """One round."""
        if self._ctx.store.queue_range(TRANS_HALF_TOPIC, HALF_QUEUE_ID)[1] == 0:
            return
        ensure_system_topic(self._ctx, TRANS_HALF_TOPIC)
        ledger = self._ledger = self._ledger or self._restored()
        began_ms = self._ctx.now_ms()
        loop = asyncio.get_running_loop()
        end = loop.time() + ROUND_S_MAX
        self._absent.clear()
        while True:
            await self._read_ops(ledger)
            # Nothing is awaited in between: no transaction ends that the ledger does not know.
            is_over = self._check_some(ledger, began_ms)
            cold, self._cold = self._cold, None
            if cold is not None:
                await self._ctx.store.cold.warmed(cold)
            elif is_over:
                break
            if loop.time() > end:
                break
            await asyncio.sleep(0)
        if self._absent:
            groups = ", ".join(sorted(self._absent)[:10])
            log.warning("half messages wait for producers of %s; none is connected", groups)
        await self._keep(ledger)

    def _restored(self) -> HalfLedger:
        """The ledger as an earlier run left it, inside of what the queues hold."""
        places = []
        for topic in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC):
            first, end = self._ctx.store.queue_range(topic, HALF_QUEUE_ID)
            kept = self._ctx.offsets.committed(TRANSACTION_GROUP, topic, HALF_QUEUE_ID)
            places.append(min(max(first if kept is None else kept, first), end))
        return HalfLedger(*places)

    async def _read_ops(self, ledger: HalfLedger) -> None:
        """Read what was ended since, to the end of the op queue; the last part without waiting."""
        store = self._ctx.store
        while True:
            # What ended in this turn counts, too.
            self._turn.end()
            first_half, half_end = store.queue_range(TRANS_HALF_TOPIC, HALF_QUEUE_ID)
            first_op, _ = store.queue_range(TRANS_OP_HALF_TOPIC, HALF_QUEUE_ID)
            ledger.begin_at(first_half, first_op)
            try:
                if self._read_some_ops(ledger, half_end) < OPS_PER_TURN_MAX:
                    return
            except ColdRead as cold:
                await store.cold.warmed(cold)
            else:
                await asyncio.sleep(0)

    def _read_some_ops(self, ledger: HalfLedger, half_end: int) -> int:
        """Read the next op messages; returns how many there were."""
        units = self._ctx.store.queue_units(
            TRANS_OP_HALF_TOPIC, HALF_QUEUE_ID, ledger.next_op, OPS_PER_TURN_MAX
        )
        for unit in units:
            op = self._read(TRANS_OP_HALF_TOPIC, unit)
            if op is None:
                ledger.read_op((), half_end)
            else:
                ledger.read_op(ended_halves(op), half_end, moved_to(op))
        return len(units)

    def _check_some(self, ledger: HalfLedger, began_ms: int) -> bool:
        """Go through the next half messages; True when the round is over.

        The ledger moves only after what replaces a half message was written.
        """
        end = self._ctx.store.queue_range(TRANS_HALF_TOPIC, HALF_QUEUE_ID)[1]
        offset = ledger.next_half
        again: list[_Again] = []
        stop = min(end, offset + HALVES_SEEN_PER_TURN_MAX)
        reads = 0
        is_over = stop == end
        while offset < stop:
            if not ledger.is_settled(offset):
                reads += 1
                try:
                    half = self._half_at(offset)
                except ColdRead as cold:
                    self._cold = cold
                    break
                if half is not None and not self._handle(half, began_ms, again):
                    is_over = True
                    break
                if reads >= HALVES_READ_PER_TURN_MAX:
                    offset += 1
                    is_over = offset == end
                    break
            offset += 1
        self._turn.end()
        for each in again:
            if each.is_asked:
                self._ask(each)
        ledger.pass_to(offset)
        return is_over

    def _handle(self, half: MessageExt, began_ms: int, again: list[_Again]) -> bool:
        """Do what is due for one half message; False when it must stay, and all behind it."""
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
            return self._give_up(half)
        is_asked = verdict is Verdict.CHECK
        inner = checked_again(half) if is_asked else shielded_again(half)
        result = self._put(inner)
        if result.status in _NEVER_STORABLE:
            return self._give_up(half)
        if result.status is not PutStatus.PUT_OK:
            return False
        ctx = self._ctx
        self._put(op_message(half, ctx.host, ctx.now_ms(), result.offset_logical))
        again.append(_Again(half, inner, result, is_asked))
        return True

    def _give_up(self, half: MessageExt) -> bool:
        ensure_system_topic(self._ctx, TRANS_CHECK_MAX_TIME_TOPIC)
        result = self._put(given_up(half))
        log.error(
            "nobody ended the transaction of message %s for %s; it is moved to %s: %s",
            half.msg_id,
            real_place(half),
            TRANS_CHECK_MAX_TIME_TOPIC,
            result.status.value,
        )
        return result.status is PutStatus.PUT_OK or result.status in _NEVER_STORABLE

    def _ask(self, each: _Again) -> None:
        """Ask one producer of the group."""
        group = each.half.properties.get(PROPERTY_PRODUCER_GROUP, "")
        question = self._question(each)
        for _ in range(PRODUCERS_TRIED_MAX):
            member = self._ctx.producers.next_of(group)
            if member is None:
                break
            try:
                cast("Connection", member.channel).send(question)
            except ConnectionClosed:
                continue
            return
        self._absent.add(group)

    def _question(self, each: _Again) -> RemotingCommand:
        half, stored = each.half, each.stored
        uniq_key = half.properties.get(PROPERTY_UNIQ_KEY)
        header = CheckTransactionStateRequestHeader(
            tran_state_table_offset=stored.offset_logical,
            commit_log_offset=stored.offset_physical,
            msg_id=uniq_key,
            transaction_id=uniq_key,
            offset_msg_id=message_id(self._ctx.host, stored.offset_physical),
        )
        inner = each.inner
        topic, queue_id = real_place(half) or (inner.topic, inner.queue_id)
        record = encode_record(
            as_sent(half, inner.properties, topic, queue_id),
            queue_offset=stored.offset_logical,
            physical_offset=stored.offset_physical,
            store_timestamp=half.store_timestamp,
        )
        return RemotingCommand.request(RequestCode.CHECK_TRANSACTION_STATE, header, record)

    async def _keep(self, ledger: HalfLedger) -> None:
        """Keep how far the round came, once the disk has it all."""
        places = {TRANS_HALF_TOPIC: ledger.next_half, TRANS_OP_HALF_TOPIC: ledger.needed_op}
        ctx = self._ctx
        kept = {
            topic: ctx.offsets.committed(TRANSACTION_GROUP, topic, HALF_QUEUE_ID)
            for topic in places
        }
        if kept == places or not await self._flushed():
            return
        for topic, offset in places.items():
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
            log.error("half message %d is not readable and is passed over", offset)
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
