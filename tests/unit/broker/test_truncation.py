"""A broker whose log is truncated: while it runs, and finished by the start after a crash."""

from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.broker import Broker
from core_broker.broker.truncation import truncate
from core_broker.errors import TruncationRefused
from core_broker.ha.rollback import plan_rollback
from core_broker.message.record import decode_records
from tests.support.broker_requests import send_header
from tests.unit.broker.conftest import MakeBroker, WireClient

Connect = Callable[[str], WireClient]
GROUP, TOPIC = "G", "TBW102"


async def fill(client: WireClient, first: int, count: int) -> list[int]:
    """Send messages to queue 0; return their queue offsets."""
    offsets = []
    for number in range(first, first + count):
        header = send_header(TOPIC, f"KEYS\x01k{number}", queue_id=0)
        answer = await client.request(310, header, b"%d " % number + b"x" * 300)
        assert answer.code == 0, answer.remark
        offsets.append(int(answer.ext_fields["queueOffset"]))
    return offsets


async def bodies(client: WireClient, count: int) -> list[int]:
    """The numbers of all messages of queue 0, read as a consumer does."""
    found: list[int] = []
    while len(found) < count:
        answer = await client.pull(TOPIC, len(found))
        assert answer.code == 0, answer.remark
        found += [int(each.split()[0]) for each in _bodies(answer.body)]
    return found


def _bodies(body: bytes) -> list[bytes]:
    return [each.body for each in decode_records(body)]


async def test_a_running_broker_goes_on_at_the_point(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker()
    client = connect(broker.addr)
    assert await fill(client, 0, 20) == list(range(20))
    ctx, saver = broker._parts.ctx, broker._parts.saver
    point = ctx.store.max_offset_physical
    await fill(client, 100, 30)
    assert len(await bodies(client, 50)) == 50
    ctx.offsets.commit(GROUP, TOPIC, 0, 45)
    await truncate(ctx, saver, point, point)
    assert ctx.store.max_offset_physical == point
    assert ctx.offsets.committed(GROUP, TOPIC, 0) == 20
    assert await fill(client, 200, 5) == list(range(20, 25))
    assert await bodies(client, 25) == [*range(20), *range(200, 205)]


async def test_a_refused_truncation_changes_nothing(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker()
    client = connect(broker.addr)
    await fill(client, 0, 20)
    ctx, saver = broker._parts.ctx, broker._parts.saver
    with pytest.raises(TruncationRefused, match="confirmed"):
        await truncate(ctx, saver, 0, 100)
    assert await fill(client, 20, 1) == [20]
    assert await bodies(client, 21) == list(range(21))


async def test_a_start_finishes_the_truncation(
    start_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    broker = await start_broker()
    client = connect(broker.addr)
    await fill(client, 0, 20)
    ctx = broker._parts.ctx
    point = ctx.store.max_offset_physical
    await fill(client, 100, 30)
    ctx.offsets.commit(GROUP, TOPIC, 0, 45)
    ctx.store.pause()
    plan = plan_rollback(ctx.store, point, ctx.delay_progress)
    ctx.store.truncator.begin(point, point, plan)
    await broker.stop()
    assert (tmp_path / "store" / "truncation.json").exists()
    again: Broker = await start_broker()
    assert not (tmp_path / "store" / "truncation.json").exists()
    store, offsets = again._parts.ctx.store, again._parts.ctx.offsets
    assert store.max_offset_physical == point
    assert offsets.committed(GROUP, TOPIC, 0) == 20
    client = connect(again.addr)
    assert await fill(client, 200, 2) == [20, 21]
    for name in ("consumerOffset.json", "consumerOffset.json.bak"):
        assert '"0":20' in (tmp_path / "store" / "config" / name).read_text().replace(" ", "")
