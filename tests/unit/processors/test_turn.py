"""processors/turn.py: unwritten messages are not acknowledged, in any order of events."""

import asyncio
from collections.abc import Callable

import pytest

from core_broker.config import BrokerConfig
from core_broker.errors import StoreReadOnly
from core_broker.processors.durability import Durability
from core_broker.processors.turn import Turn
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_harness import Peer


class ScriptedStore:
    """Records its calls, and fails to write when a test says so."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.fails = False
        self.max_offset_physical = 100
        self.writable = True

    def stage_pending(self) -> None:
        self.done.append("staged")

    def write_staged(self) -> None:
        if self.fails:
            raise StoreReadOnly("the disk failed")
        self.done.append("written")

    def on_flushed(self, end: int, callback: Callable[[bool], None]) -> None:
        self.done.append(f"waits for {end}")
        callback(True)


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


@pytest.fixture
def turn(store: ScriptedStore) -> Turn:
    config = BrokerConfig(flush_disk_type="SYNC_FLUSH")
    durability = Durability(store, lambda: config, lambda: None)  # type: ignore[arg-type]
    return Turn(store, lambda: store.done.append("woken"), durability)  # type: ignore[arg-type]


async def test_written_first_then_flushed_then_woken(turn: Turn, store: ScriptedStore) -> None:
    turn.when_confirmed(lambda code: store.done.append(code.name))
    turn.end()
    assert store.done == ["staged", "written", "waits for 100", "SUCCESS", "woken"]


async def test_a_turn_without_answers_ends_by_itself_once(turn: Turn, store: ScriptedStore) -> None:
    turn.end_soon()
    turn.end_soon()
    assert store.done == []
    await asyncio.sleep(0)
    assert store.done == ["staged", "written", "woken"]


async def test_producers_are_notified_of_a_failed_write(turn: Turn, store: ScriptedStore) -> None:
    store.fails = True
    turn.when_confirmed(lambda code: store.done.append(code.name))
    with pytest.raises(StoreReadOnly):
        turn.end()
    assert store.done == ["staged", "SERVICE_NOT_AVAILABLE"]


@pytest.mark.parametrize("by", ["a one-way message", "a service"])
async def test_answers_of_a_turn_whose_write_failed_before_are_not_sent(
    turn: Turn, store: ScriptedStore, by: str
) -> None:
    """A one-way message, or a service such as the delivery of delayed messages, ends the turn.

    Then the server sends the answers of the iteration: a failed write leaves nothing to write.
    """
    ended: list[str] = []

    def server_ends_turn() -> None:
        try:
            turn.write_messages()
        except StoreReadOnly:
            ended.append("refused")
        else:
            ended.append("sent")

    store.fails = True
    if by == "a service":
        asyncio.get_running_loop().call_soon(server_ends_turn)
        with pytest.raises(StoreReadOnly):
            turn.end()
        store.fails = False
    else:
        turn.end_soon()
        asyncio.get_running_loop().call_soon(server_ends_turn)
    await asyncio.sleep(0)
    assert ended == ["refused"]
    store.fails = False
    await asyncio.sleep(0)
    server_ends_turn()
    assert ended == ["refused", "sent"], "the next turn has nothing to do with it"


class LateReplicas:
    """Slaves that do not acknowledge in time."""

    def when_replicated(self, end: int, then: Callable[[ResponseCode], None]) -> None:
        then(ResponseCode.FLUSH_SLAVE_TIMEOUT)


@pytest.mark.parametrize(
    ("is_elected", "answer"),
    [(False, ResponseCode.SUCCESS), (True, ResponseCode.FLUSH_SLAVE_TIMEOUT)],
)
async def test_a_late_copy_is_refused_where_a_failover_may_take_it_back(
    store: ScriptedStore, is_elected: bool, answer: ResponseCode
) -> None:
    """The message of a consumer that sends back: a success would let the group skip it."""
    config = BrokerConfig(broker_role="SYNC_MASTER", enable_controller_mode=is_elected)
    durability = Durability(store, lambda: config, LateReplicas)  # type: ignore[arg-type]
    turn = Turn(store, lambda: None, durability)  # type: ignore[arg-type]
    peer, request = Peer(40000), RemotingCommand.request(RequestCode.CONSUMER_SEND_MSG_BACK)
    assert turn.confirm(peer, request, RemotingCommand.response()) is None  # type: ignore[arg-type]
    turn.end()
    assert peer.answers[request.opaque].code == answer
