"""How far the checks have come: kept late enough, never too far, over restarts and slow disks."""

import pytest

from core_broker.errors import StoreReadOnly
from core_broker.message.topics import (
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANSACTION_GROUP,
)
from core_broker.processors.transaction_checks import TransactionChecks
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import (
    EndTransactionRequestHeader,
)
from core_broker.store import PutResult, PutStatus
from tests.support.cold_files import ColdFiles
from tests.support.desk import Desk
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
from tests.unit.processors.conftest import MakeDesk

pytestmark = pytest.mark.usefixtures("topic")


class TestProgress:
    async def test_survives_a_restart(self, desk: Desk) -> None:
        peer = await producer(desk)
        halves = [await begin(desk, born_timestamp=desk.now_ms) for _ in range(3)]
        await end(desk, halves[1], COMMIT)
        await end(desk, halves[2], ROLLBACK)
        desk.now_ms += TIMEOUT_MS
        await desk.check_half_messages()
        assert [each.ext_fields["tranStateTableOffset"] for each in asked(peer)] == ["3"]
        desk.checks = TransactionChecks(desk.ctx, desk.requests.turn)
        desk.now_ms += 60_000
        await desk.check_half_messages()
        assert [each.ext_fields["tranStateTableOffset"] for each in asked(peer)] == ["3", "4"]

    async def test_a_crash_before_it_is_kept_asks_nobody_twice(self, desk: Desk) -> None:
        """The copy is stored with a note that it is one."""
        peer = await producer(desk)
        await old(desk)
        desk.ctx.offsets.commit(TRANSACTION_GROUP, TRANS_HALF_TOPIC, 0, 0)
        await desk.check_half_messages()
        desk.ctx.offsets.commit(TRANSACTION_GROUP, TRANS_HALF_TOPIC, 0, 0)
        desk.ctx.offsets.commit(TRANSACTION_GROUP, TRANS_OP_HALF_TOPIC, 0, 0)
        desk.checks = TransactionChecks(desk.ctx, desk.requests.turn)
        desk.now_ms += 60_000
        await desk.check_half_messages()
        assert [each.ext_fields["tranStateTableOffset"] for each in asked(peer)] == ["1", "2"]

    @pytest.mark.parametrize("forged", [-5, 10**15])
    async def test_does_not_follow_what_clients_commit(self, desk: Desk, forged: int) -> None:
        """Anybody can commit offsets of any group; half messages are found all the same."""
        peer = await producer(desk)
        await old(desk)
        await desk.check_half_messages()
        for topic in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC):
            desk.ctx.offsets.commit(TRANSACTION_GROUP, topic, 0, forged)
        desk.now_ms += 60_000
        await desk.check_half_messages()
        assert len(asked(peer)) == 2
        assert progress(desk) == (2, 1)

    @pytest.mark.parametrize("kept", [-5, 10**15])
    async def test_begins_inside_of_the_queues(self, desk: Desk, kept: int) -> None:
        """The log may have lost its end in a crash, and the offsets not."""
        peer = await producer(desk)
        await end(desk, await old(desk), COMMIT)
        for topic in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC):
            desk.ctx.offsets.commit(TRANSACTION_GROUP, topic, 0, kept)
        await desk.check_half_messages()
        assert progress(desk) == (1, 1)
        await old(desk)
        await desk.check_half_messages()
        assert len(asked(peer)) == 1

    async def test_is_kept_after_the_disk_has_the_copies(self, desk: Desk) -> None:
        await old(desk)
        lanes, desk.lanes = desk.lanes, []
        rounds = desk.checks.check()
        waiting = rounds.send(None)
        assert waiting is not None
        assert progress(desk) == (None, None)
        assert len(await desk.messages(TRANS_HALF_TOPIC)) == 2
        rounds.close()
        desk.lanes = lanes

    async def test_nothing_moves_when_the_store_takes_nothing(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        peer = await producer(desk)
        await old(desk)
        with monkeypatch.context() as broken:
            refused = PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
            broken.setattr(desk.ctx.store, "put", lambda inner: refused)
            await desk.check_half_messages()
        assert (asked(peer), progress(desk)[0]) == ([], 0)
        await desk.check_half_messages()
        assert len(asked(peer)) == 1

    async def test_nothing_moves_when_the_copies_are_not_written(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        peer = await producer(desk)
        await old(desk)
        write = desk.ctx.store.write_staged
        calls = []

        def write_staged() -> None:
            calls.append(1)
            if len(calls) == 2:
                desk.ctx.store._appender._abandon("the disk is full")
            write()

        with monkeypatch.context() as broken:
            broken.setattr(desk.ctx.store, "write_staged", write_staged)
            with pytest.raises(StoreReadOnly):
                await desk.check_half_messages()
        assert (asked(peer), progress(desk)) == ([], (None, None))
        await desk.check_half_messages()
        assert len(asked(peer)) == 1


async def test_what_has_left_the_memory_is_read_by_the_way(make_desk: MakeDesk) -> None:
    """A round waits for the disk, and the event loop does not."""
    files = ColdFiles()
    desk = make_desk(files=files)
    desk.topic()
    peer = await producer(desk)
    halves = [await begin(desk, born_timestamp=desk.now_ms) for _ in range(30)]
    for half in halves[::3]:
        await end(desk, half, ROLLBACK)
    await desk.send("T", b"x" * 8_000)
    desk.now_ms += TIMEOUT_MS
    desk.ctx.store.tick(desk.now_ms)
    files.evict()
    for lane in desk.lanes:
        lane.hold()
    await desk.check_half_messages()
    assert files.reads > 0
    assert len(asked(peer)) == 20
    assert progress(desk)[0] == 30


async def test_ending_what_has_left_the_memory(make_desk: MakeDesk) -> None:
    files = ColdFiles()
    desk = make_desk(files=files)
    desk.topic()
    half = await begin(desk)
    await desk.send("T", b"x" * 8_000, queue_id=1)
    desk.ctx.store.tick(desk.now_ms)
    files.evict()
    for lane in desk.lanes:
        lane.hold()
    header = EndTransactionRequestHeader(
        producer_group="PG",
        tran_state_table_offset=half.queue_offset,
        commit_log_offset=half.offset_physical,
        commit_or_rollback=COMMIT,
        msg_id="U1",
    )
    request = desk.request(RequestCode.END_TRANSACTION, header)
    assert desk.give(request) is None
    desk.read_cold()
    desk.requests.turn.end()
    assert desk.client.answers[request.opaque].code == 0
    assert desk.ctx.store.queue_range("T", 2) == (0, 1)
