"""The pull loop of one queue against a scripted broker."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest

from core_broker.client import ConsumerSettings, ConsumeStatus
from core_broker.client.consumer import puller as puller_module
from core_broker.client.consumer.delivery import Delivery
from core_broker.client.consumer.process_queue import CacheLimits, ProcessQueue
from core_broker.client.consumer.puller import PullContext, Puller
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import HookChain
from core_broker.client.instance import ClientInstance
from core_broker.client.subscription import build_subscription
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import HeartbeatData, MessageQueue
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import PullMessageRequestHeader
from tests.support.consumer_parts import QUEUE, OffsetsInMemory, RecordingSendBack, record
from tests.support.eventually import eventually
from tests.support.scripted_peer import Handler, ScriptedPeer, refuse

PULL = RequestCode.PULL_MESSAGE


def answer(code: int, next_offset: int, *records: bytes, broker_id: int = 0) -> Handler:
    def make(_request: RemotingCommand) -> RemotingCommand:
        fields = {
            "suggestWhichBrokerId": str(broker_id),
            "nextBeginOffset": str(next_offset),
            "minOffset": "3",
            "maxOffset": "100",
        }
        return RemotingCommand.response(code, None, fields, b"".join(records))

    return make


class Rig:
    """One puller between a scripted broker and a listener recording messages."""

    def __init__(self, peer: ScriptedPeer) -> None:
        self.peer = peer
        self.consumed: list[MessageExt] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.announced = 0
        self.correct_offset: list[int] = []
        self.paused = False
        self.looks = 0
        self.offsets = OffsetsInMemory()
        self.stats: dict[str, ConsumerStats] = defaultdict(ConsumerStats)
        self.settings = ConsumerSettings(cache=CacheLimits(messages_max=2))
        self.instance = ClientInstance(
            peer.addr, name="test", heartbeat=lambda client_id: HeartbeatData(client_id=client_id)
        )
        self.delivery = Delivery(
            "G",
            self._listen,
            self.settings,
            offsets=self.offsets,
            send_back=RecordingSendBack().send_back,
            hooks=HookChain(()),
            stats=self.stats.__getitem__,
        )
        context = PullContext(
            self.instance,
            "G",
            self.settings,
            {"T": build_subscription("T", "Aa", version=7)},
            self.offsets,
            self.delivery,
            stats=self.stats.__getitem__,
            announce=self._announce,
            correct_offset=lambda _queue, offset: self.correct_offset.append(offset),
            advance_offset=self.offsets.update,
            is_paused=self._is_paused,
        )
        self.process_queue = ProcessQueue(QUEUE, 0)
        self.puller = Puller(context, self.process_queue, 5)

    def _is_paused(self, _queue: MessageQueue) -> bool:
        self.looks += 1
        return self.paused

    async def start(self, *script: Handler) -> None:
        self.peer.serve_route(["T"], {"b": self.peer.addr})
        self.peer.script(PULL, script)
        self.peer.on(PULL, lambda _: None)
        await self.instance.routes.route("T")
        self.delivery.start()
        self.puller.start()

    async def stop(self) -> None:
        self.puller.stop()
        await self.puller.ended()
        await self.delivery.stop()
        await self.instance.stop()

    async def pulls(self, count: int) -> list[PullMessageRequestHeader]:
        await eventually(lambda: len(self.peer.received(PULL)) >= count)
        return [request.header(PullMessageRequestHeader) for request in self.peer.received(PULL)]

    async def _listen(self, messages: list[MessageExt]) -> ConsumeStatus:
        await self.gate.wait()
        self.consumed += messages
        return ConsumeStatus.CONSUME_SUCCESS

    def _announce(self) -> None:
        self.announced += 1


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    for pause in ("PAUSE_AFTER_ERROR_S", "PAUSE_WHEN_FULL_S", "PAUSE_AFTER_FLOW_CONTROL_S"):
        monkeypatch.setattr(puller_module, pause, 0.005)
    async with ScriptedPeer() as peer:
        rig = Rig(peer)
        yield rig
        await rig.stop()


async def test_found_messages_are_delivered_and_the_next_pull_goes_on(rig: Rig) -> None:
    await rig.start(
        answer(0, 7, record(5, properties={"TAGS": "Aa"}), record(6, properties={"TAGS": "Aa"}))
    )
    first, second = await rig.pulls(2)
    assert (first.queue_offset, first.max_msg_nums, first.sub_version) == (5, 32, 7)
    assert (first.subscription, first.expression_type, first.broker_name) == (None, "TAG", "b")
    assert (first.sys_flag, first.commit_offset, first.suspend_timeout_millis) == (2, 0, 15_000)
    assert second.queue_offset == 7
    await eventually(lambda: rig.offsets.cached(QUEUE) == 7)
    assert [message.broker_name for message in rig.consumed] == ["b", "b"]


async def test_the_next_pull_carries_the_offset_to_commit(rig: Rig) -> None:
    rig.offsets.update(QUEUE, 4)
    await rig.start()
    (pull,) = await rig.pulls(1)
    assert (pull.commit_offset, pull.sys_flag) == (4, 3)


async def test_tags_of_the_same_hash_are_filtered_here(rig: Rig) -> None:
    await rig.start(
        answer(
            0,
            8,
            record(5, properties={"TAGS": "BB"}),
            record(6, properties={"TAGS": "Aa"}),
            record(7),
        )
    )
    await rig.pulls(2)
    await eventually(lambda: rig.offsets.cached(QUEUE) == 8)
    assert [message.queue_offset for message in rig.consumed] == [6]


async def test_what_was_filtered_out_still_moves_the_offset(rig: Rig) -> None:
    await rig.start(answer(20, 50))
    assert (await rig.pulls(2))[1].queue_offset == 50
    assert rig.offsets.cached(QUEUE) == 50


async def test_nothing_new_asks_again_at_the_same_place(rig: Rig) -> None:
    await rig.start(answer(19, 5), answer(19, 5))
    assert [pull.queue_offset for pull in await rig.pulls(3)] == [5, 5, 5]


async def test_an_offset_outside_of_the_queue_is_reported(rig: Rig) -> None:
    def correct_offset(process_queue: ProcessQueue) -> bool:
        process_queue.dropped = bool(rig.correct_offset)
        return process_queue.dropped

    await rig.start(answer(21, 3))
    await eventually(lambda: correct_offset(rig.process_queue))
    assert rig.correct_offset == [3]


@pytest.mark.parametrize("code", [24, 25])
async def test_a_broker_that_does_not_know_us_gets_a_heartbeat(rig: Rig, code: int) -> None:
    await rig.start(lambda _: refuse(code))
    await rig.pulls(2)
    assert rig.announced == 1


@pytest.mark.parametrize("code", [1, 2, 16, ResponseCode.FLOW_CONTROL])
async def test_any_refusal_only_pauses(rig: Rig, code: int) -> None:
    await rig.start(lambda _: refuse(code), answer(0, 6, record(5, properties={"TAGS": "Aa"})))
    await eventually(lambda: rig.consumed)
    assert rig.announced == 0


async def test_rubbish_only_pauses(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    await rig.start(
        answer(0, 6, b"no record at all, but bytes"),
        lambda _: RemotingCommand.response(0, None, {"nextBeginOffset": "x"}),
        answer(0, 6, record(5, properties={"TAGS": "Aa"})),
    )
    await eventually(lambda: rig.consumed)
    assert "Traceback" not in caplog.text


async def test_pulling_pauses_while_the_process_queue_is_full(rig: Rig) -> None:
    rig.gate.clear()
    await rig.start(
        answer(0, 8, *(record(offset, properties={"TAGS": "Aa"}) for offset in (5, 6, 7)))
    )
    await eventually(lambda: rig.process_queue.count == 3)
    await asyncio.sleep(0.05)
    assert len(rig.peer.received(PULL)) == 1
    rig.gate.set()
    await rig.pulls(2)


async def test_a_slow_broker_may_send_us_elsewhere(rig: Rig) -> None:
    await rig.start(answer(19, 5, broker_id=1), answer(19, 5))
    assert len(await rig.pulls(3)) == 3


async def test_a_paused_queue_is_not_pulled(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(puller_module, "PAUSE_WHEN_FULL_S", 0.001)
    rig.paused = True
    await rig.start()
    await eventually(lambda: rig.looks > 5)
    assert rig.peer.received(PULL) == []
    rig.paused = False
    await eventually(lambda: rig.peer.received(PULL))


async def test_pulling_goes_on_at_the_next_master(rig: Rig) -> None:
    """The route is fetched after a failed pull, not only by the periodic refresh."""
    async with ScriptedPeer() as elected:
        elected.script(PULL, [answer(0, 6, record(5, properties={"TAGS": "Aa"}))])
        elected.on(PULL, lambda _: None)

        def lost(_request: RemotingCommand) -> RemotingCommand:
            rig.peer.serve_route(["T"], {"b": elected.addr})
            return refuse(ResponseCode.SERVICE_NOT_AVAILABLE, "another broker is elected")

        await rig.start(lost)
        await eventually(lambda: len(elected.received(PULL)) >= 2)
        assert len(rig.peer.received(PULL)) == 1
        await eventually(lambda: rig.offsets.cached(QUEUE) == 6)
