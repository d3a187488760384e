"""Offsets on the broker, and offsets in a file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.client.consumer.offset_stores import BrokerOffsets, LocalOffsets
from core_broker.client.instance import ClientInstance
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import HeartbeatData, MessageQueue
from core_broker.remoting.codes import RequestCode
from tests.support.consumer_parts import QUEUE
from tests.support.scripted_peer import ScriptedPeer, ok, refuse

QUERY, UPDATE = RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.UPDATE_CONSUMER_OFFSET


@pytest.fixture
async def peer() -> AsyncIterator[ScriptedPeer]:
    async with ScriptedPeer() as scripted:
        scripted.serve_route(["T"], {"b": scripted.addr})
        yield scripted


@pytest.fixture
async def offsets(peer: ScriptedPeer) -> AsyncIterator[BrokerOffsets]:
    instance = ClientInstance(
        peer.addr, name="test", heartbeat=lambda client_id: HeartbeatData(client_id=client_id)
    )
    await instance.routes.route("T")
    yield BrokerOffsets(instance, "G")
    await instance.stop()


async def test_the_broker_knows(peer: ScriptedPeer, offsets: BrokerOffsets) -> None:
    peer.on(QUERY, lambda _: ok({"offset": "12"}))
    assert await offsets.read(QUEUE) == 12
    peer.on(QUERY, lambda _: refuse(22))
    assert await offsets.read(QUEUE) is None
    peer.on(QUERY, lambda _: refuse(1))
    with pytest.raises(RequestRefused):
        await offsets.read(QUEUE)


async def test_only_what_changed_is_committed(peer: ScriptedPeer, offsets: BrokerOffsets) -> None:
    await offsets.persist([QUEUE])
    offsets.update(QUEUE, 5)
    for _ in range(3):
        await offsets.persist([QUEUE])
    offsets.update(QUEUE, 6)
    await offsets.persist([QUEUE])
    assert [request.ext_fields for request in peer.received(UPDATE)] == [
        {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": offset}
        for offset in ("5", "6")
    ]


async def test_a_commit_that_failed_is_tried_again(
    peer: ScriptedPeer, offsets: BrokerOffsets, caplog: pytest.LogCaptureFixture
) -> None:
    peer.script(UPDATE, [lambda _: refuse(1)])
    offsets.update(QUEUE, 5)
    await offsets.persist([QUEUE])
    assert "was not committed" in caplog.text
    await offsets.persist([QUEUE])
    assert len(peer.received(UPDATE)) == 2


async def test_an_offset_goes_back_only_by_force(offsets: BrokerOffsets) -> None:
    offsets.update(QUEUE, 5)
    offsets.update(QUEUE, 4)
    assert offsets.cached(QUEUE) == 5
    offsets.update(QUEUE, 3, force=True)
    assert offsets.cached(QUEUE) == 3
    offsets.forget(QUEUE)
    assert offsets.cached(QUEUE) is None


def local(folder: Path) -> LocalOffsets:
    return LocalOffsets(folder, "1.2.3.4@DEFAULT", "G")


async def test_local_offsets_outlive_the_process(tmp_path: Path) -> None:
    other = MessageQueue("U", "b", 3)
    offsets = local(tmp_path)
    assert await offsets.read(QUEUE) is None
    offsets.update(QUEUE, 5)
    offsets.update(other, 6)
    await offsets.persist([QUEUE, other])
    again = local(tmp_path)
    assert await again.read(QUEUE) == 5
    again.update(QUEUE, 7)
    await again.persist([QUEUE])
    third = local(tmp_path)
    assert (await third.read(QUEUE), await third.read(other)) == (7, 6)
    written = (tmp_path / "1.2.3.4@DEFAULT" / "G" / "offsets.json").read_text()
    assert '{"brokerName":"b","queueId":0,"topic":"T"}:7' in written


async def test_persisting_before_reading_loses_nothing(tmp_path: Path) -> None:
    offsets = local(tmp_path)
    offsets.update(QUEUE, 5)
    await offsets.persist([QUEUE])
    await local(tmp_path).persist([])
    assert await local(tmp_path).read(QUEUE) == 5


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b'{"offsetTable":{"x":1}}', b"[]"])
async def test_a_broken_file_is_logged_and_replaced(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "1.2.3.4@DEFAULT" / "G" / "offsets.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    offsets = local(tmp_path)
    assert await offsets.read(QUEUE) is None
    assert "cannot be read" in caplog.text
    offsets.update(QUEUE, 5)
    await offsets.persist([QUEUE])
    assert await local(tmp_path).read(QUEUE) == 5


async def test_a_broken_file_is_replaced_by_the_one_before_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offsets = local(tmp_path)
    for offset in (5, 6):
        offsets.update(QUEUE, offset)
        await offsets.persist([QUEUE])
    path = tmp_path / "1.2.3.4@DEFAULT" / "G" / "offsets.json"
    path.write_bytes(b'{"offsetTa')
    again = local(tmp_path)
    assert await again.read(QUEUE) == 5
    assert "cannot be read" in caplog.text
    again.update(QUEUE, 7)
    await again.persist([QUEUE])
    assert await local(tmp_path).read(QUEUE) == 7
    path.write_bytes(b"broken again before the backup was renewed")
    assert await local(tmp_path).read(QUEUE) == 5


async def test_an_unwritable_folder_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "1.2.3.4@DEFAULT").write_text("a file where a folder should be")
    offsets = local(tmp_path)
    await offsets.read(QUEUE)
    offsets.update(QUEUE, 5)
    await offsets.persist([QUEUE])
    assert "were not saved" in caplog.text


async def test_offsets_are_committed_to_the_next_master(
    peer: ScriptedPeer, offsets: BrokerOffsets
) -> None:
    async with ScriptedPeer() as elected:
        elected.on(UPDATE, lambda _: ok())
        peer.serve_route(["T"], {"b": elected.addr})
        peer.on(UPDATE, lambda _: refuse(14, "elsewhere"))
        offsets.update(QUEUE, 5)
        await offsets.persist([QUEUE])
        await offsets._instance.routes.route("T")  # as the next pull or the periodic refresh does
        await offsets.persist([QUEUE])
        (request,) = elected.received(UPDATE)
        assert request.ext_fields["commitOffset"] == "5"
