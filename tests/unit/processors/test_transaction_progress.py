"""How far the checks have come: kept late enough, never too far, over restarts and slow disks."""

import asyncio
from dataclasses import replace

import pytest

from core_broker.errors import StoreReadOnly
from core_broker.message.topics import (
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANSACTION_GROUP,
)
from core_broker.processors.transaction_checks import TransactionChecks
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.headers import (
    EndTransactionRequestHeader,
)
from core_broker.store import PutResult, PutStatus
from tests.support.broker_harness import BrokerHarness
from tests.support.cold_files import ColdFiles
from tests.support.eventually import eventually
from tests.support.half_messages import (
    COMMIT,
    ROLLBACK,
    TIMEOUT_MS,
    asked,
    begin,
    end,
    old,
    producer,
    progress,
)
from tests.support.scripted_majority import LEADER, ScriptedMajority
from tests.unit.processors.conftest import MakeBroker

pytestmark = pytest.mark.usefixtures("topic")


class TestProgress:
    async def test_survives_a_restart(self, broker: BrokerHarness) -> None:
        peer = await producer(broker)
        halves = [await begin(broker, born_timestamp=broker.now_ms) for _ in range(3)]
        await end(broker, halves[1], COMMIT)
        await end(broker, halves[2], ROLLBACK)
        broker.now_ms += TIMEOUT_MS
        await broker.check_half_messages()
        assert [each.ext_fields["tranStateTableOffset"] for each in asked(peer)] == ["3"]
        broker.checks = TransactionChecks(broker.ctx, broker.requests.turn)
        broker.now_ms += 60_000
        await broker.check_half_messages()
        assert [each.ext_fields["tranStateTableOffset"] for each in asked(peer)] == ["3", "4"]

    async def test_a_crash_before_the_save_repeats_no_check(self, broker: BrokerHarness) -> None:
        """An op message with MOVED_TO is stored with the copy."""
        peer = await producer(broker)
        await old(broker)
        broker.ctx.offsets.commit(TRANSACTION_GROUP, TRANS_HALF_TOPIC, 0, 0)
        await broker.check_half_messages()
        broker.ctx.offsets.commit(TRANSACTION_GROUP, TRANS_HALF_TOPIC, 0, 0)
        broker.ctx.offsets.commit(TRANSACTION_GROUP, TRANS_OP_HALF_TOPIC, 0, 0)
        broker.checks = TransactionChecks(broker.ctx, broker.requests.turn)
        broker.now_ms += 60_000
        await broker.check_half_messages()
        assert [each.ext_fields["tranStateTableOffset"] for each in asked(peer)] == ["1", "2"]

    async def test_a_run_begins_with_the_saved_progress(self, broker: BrokerHarness) -> None:
        """A truncation between two masterships takes progress back, also that of the checks."""
        broker.ctx.reconfigure(replace(broker.ctx.config, transaction_check_interval=10))
        peer = await producer(broker)
        for _ in range(3):
            await end(broker, await old(broker), COMMIT)
        await broker.check_half_messages()
        assert progress(broker) == (3, 3)
        broker.ctx.offsets.commit(TRANSACTION_GROUP, TRANS_HALF_TOPIC, 0, 2)
        run = asyncio.get_running_loop().create_task(broker.checks.run())
        await eventually(lambda: bool(asked(peer)))
        assert [each.ext_fields["tranStateTableOffset"] for each in asked(peer)] == ["3"]
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)

    @pytest.mark.parametrize("forged", [-5, 10**15])
    async def test_forged_offsets_are_ignored(self, broker: BrokerHarness, forged: int) -> None:
        """Clients can commit offsets of any group; checks still find the half messages."""
        peer = await producer(broker)
        await old(broker)
        await broker.check_half_messages()
        for topic in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC):
            broker.ctx.offsets.commit(TRANSACTION_GROUP, topic, 0, forged)
        broker.now_ms += 60_000
        await broker.check_half_messages()
        assert len(asked(peer)) == 2
        assert progress(broker) == (2, 1)

    @pytest.mark.parametrize("kept", [-5, 10**15])
    async def test_begins_inside_of_the_queues(self, broker: BrokerHarness, kept: int) -> None:
        """A crash may have truncated the log, but not the saved offsets."""
        peer = await producer(broker)
        await end(broker, await old(broker), COMMIT)
        for topic in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC):
            broker.ctx.offsets.commit(TRANSACTION_GROUP, topic, 0, kept)
        await broker.check_half_messages()
        assert progress(broker) == (1, 1)
        await old(broker)
        await broker.check_half_messages()
        assert len(asked(peer)) == 1

    async def test_is_kept_after_the_disk_has_the_copies(self, broker: BrokerHarness) -> None:
        await old(broker)
        executors, broker.executors = broker.executors, []
        rounds = broker.checks.check()
        waiting = rounds.send(None)
        assert waiting is not None
        assert progress(broker) == (None, None)
        assert len(await broker.messages(TRANS_HALF_TOPIC)) == 2
        rounds.close()
        broker.executors = executors

    @pytest.mark.parametrize(
        ("code", "is_kept"),
        [
            (ResponseCode.SUCCESS, True),
            (ResponseCode.FLUSH_SLAVE_TIMEOUT, False),
            (ResponseCode.SERVICE_NOT_AVAILABLE, False),
        ],
    )
    async def test_is_kept_after_a_majority_has_the_copies(
        self, broker: BrokerHarness, code: ResponseCode, is_kept: bool
    ) -> None:
        """Followers copy the progress: without the copy, a new leader would never check again."""
        await old(broker)
        broker.ctx.reconfigure(replace(broker.ctx.config, **LEADER))
        majority = ScriptedMajority(broker)
        round_ = asyncio.get_running_loop().create_task(broker.checks.check())
        while not (majority.held or round_.done()):
            await asyncio.sleep(0)
            for executor in broker.executors:
                executor.run()
        assert progress(broker) == (None, None)
        majority.answer(code)
        await round_
        assert (progress(broker) == (1, 0)) == is_kept

    async def test_no_progress_with_a_full_store(
        self, broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        peer = await producer(broker)
        await old(broker)
        with monkeypatch.context() as broken:
            refused = PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
            broken.setattr(broker.ctx.store, "put", lambda inner: refused)
            await broker.check_half_messages()
        assert (asked(peer), progress(broker)[0]) == ([], 0)
        await broker.check_half_messages()
        assert len(asked(peer)) == 1

    async def test_no_progress_without_written_copies(
        self, broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        peer = await producer(broker)
        await old(broker)
        write = broker.ctx.store.write_staged
        calls = []

        def write_staged() -> None:
            calls.append(1)
            if len(calls) == 2:
                broker.ctx.store._appender._abandon("the disk is full")
            write()

        with monkeypatch.context() as broken:
            broken.setattr(broker.ctx.store, "write_staged", write_staged)
            with pytest.raises(StoreReadOnly):
                await broker.check_half_messages()
        assert (asked(peer), progress(broker)) == ([], (None, None))
        await broker.check_half_messages()
        assert len(asked(peer)) == 1


async def test_cold_half_messages_are_read_from_disk(make_broker: MakeBroker) -> None:
    """A round waits for the disk, and the event loop does not."""
    files = ColdFiles()
    broker = make_broker(files=files)
    broker.topic()
    peer = await producer(broker)
    halves = [await begin(broker, born_timestamp=broker.now_ms) for _ in range(30)]
    for half in halves[::3]:
        await end(broker, half, ROLLBACK)
    await broker.send("T", b"x" * 8_000)
    broker.now_ms += TIMEOUT_MS
    broker.ctx.store.tick(broker.now_ms)
    files.evict()
    for executor in broker.executors:
        executor.hold()
    await broker.check_half_messages()
    assert files.reads > 0
    assert len(asked(peer)) == 20
    assert progress(broker)[0] == 30


async def test_ending_a_cold_half_message(make_broker: MakeBroker) -> None:
    files = ColdFiles()
    broker = make_broker(files=files)
    broker.topic()
    half = await begin(broker)
    await broker.send("T", b"x" * 8_000, queue_id=1)
    broker.ctx.store.tick(broker.now_ms)
    files.evict()
    for executor in broker.executors:
        executor.hold()
    header = EndTransactionRequestHeader(
        producer_group="PG",
        tran_state_table_offset=half.queue_offset,
        commit_log_offset=half.offset_physical,
        commit_or_rollback=COMMIT,
        msg_id="U1",
    )
    request = broker.request(RequestCode.END_TRANSACTION, header)
    assert broker.give(request) is None
    broker.read_cold()
    broker.requests.turn.end()
    assert broker.client.answers[request.opaque].code == 0
    assert broker.ctx.store.queue_range("T", 2) == (0, 1)
