"""Random and hostile requests are answered or refused; the state stays consistent and bounded."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core_broker.config import ControllerConfig
from core_broker.controller.changes import Changes
from core_broker.controller.live_brokers import LiveBrokers
from core_broker.controller.log_requests import BODY_BYTES_MAX, REQUESTS_MAX
from core_broker.controller.machine import ReplicasInfo
from core_broker.controller.model import NAME_CHARS_MAX
from core_broker.controller.peers import peers_of
from core_broker.controller.processor import QUERIED_SETS_MAX, ControllerProcessor
from core_broker.controller.role_changes import RoleChanges
from core_broker.controller.server import Controller
from core_broker.errors import GantryError
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode as Request
from core_broker.remoting.codes import ResponseCode as Code
from core_broker.remoting.command import RemotingCommand
from tests.support.controller_histories import Invariants
from tests.support.controllers import ControllerClient, ScriptedBroker

GARBAGE = (b"", b"{", b"[" * 1000, b"\xff" * 100, b'{"syncStateSet":[1,2,"x"]}', b'["a",1]')
NONSENSE: dict[str, object] = {
    "clusterName": "../../x",
    "brokerName": "%RETRY%" * 200,
    "brokerId": -(2**63),
    "masterBrokerId": 2**63 - 1,
    "masterEpoch": -(2**31),
    "appliedBrokerId": 2**63 - 1,
    "registerCheckCode": ";" * 2_000,
    "brokerAddress": "x" * 2_000,
    "brokerControllerIdsToClean": "1;" * 2_000,
    "designateElect": "TRUE",
}


class OneMember:
    """A log of one member without a disk: every command is committed at once."""

    is_leader = True
    leader_id = 1

    def __init__(self, machine: ReplicasInfo) -> None:
        self._machine = machine

    async def propose(self, command: bytes) -> Any:
        """Apply a command."""
        return self._machine.apply(command)

    async def read_barrier(self) -> None:
        """Return at once."""


class Peer:
    """A connection without a socket."""

    peer = "192.0.2.1:1"

    def close(self, reason: str) -> None:
        """Do nothing."""


def processor_of(machine: ReplicasInfo) -> ControllerProcessor:
    log, live, config = OneMember(machine), LiveBrokers(0), ControllerConfig()
    silent = ControllerConfig(notify_broker_role_changed=False)
    notices = RoleChanges(RemotingClient(name="test"))
    changes = Changes(machine, log, live, notices, lambda: silent, lambda: 0)
    return ControllerProcessor(machine, log, live, changes, peers_of(config), lambda: 0)


NAMES = st.sampled_from(("a", "b", "")) | st.text(max_size=8)
NUMBERS = st.integers(-2, 4).map(str) | st.text(max_size=4)
FIELDS = st.fixed_dictionaries(
    {"clusterName": st.sampled_from(("c", "d")), "brokerName": NAMES, "brokerAddr": NAMES},
    optional={
        "brokerId": NUMBERS,
        "appliedBrokerId": NUMBERS,
        "registerCheckCode": st.sampled_from(("h:1;1", "h:2;1", ";", "")),
        "brokerAddress": NAMES,
        "masterBrokerId": NUMBERS,
        "masterEpoch": NUMBERS,
        "designateElect": st.sampled_from(("true", "false", "1")),
        "brokerControllerIdsToClean": st.sampled_from(("", "1", "1;2", "x", ";;")),
        "isCleanLivingBroker": st.sampled_from(("true", "false")),
        "heartbeatTimeoutMills": NUMBERS,
    },
)
BODIES = st.binary(max_size=40) | st.builds(
    lambda ids, epoch: b'{"syncStateSet":%b,"syncStateSetEpoch":%d}' % (str(ids).encode(), epoch),
    st.lists(st.integers(-1, 3), max_size=3),
    st.integers(-1, 4),
)


@given(data=st.data())
def test_any_history_of_requests_is_answered_and_keeps_the_invariants(data: st.DataObject) -> None:
    machine, invariants = ReplicasInfo(), Invariants()
    processor = processor_of(machine)
    codes = st.sampled_from(sorted([*processor.at_once, *processor.in_log]))
    for _ in range(data.draw(st.integers(1, 12))):
        code, fields, body = data.draw(codes), data.draw(FIELDS), data.draw(BODIES)
        request = RemotingCommand.request(code, fields, body)
        connection: Any = Peer()
        try:
            if code in processor.at_once:
                answer = processor.at_once[code](connection, request)
            else:
                answer = asyncio.run(processor.in_log[code](request))  # type: ignore[arg-type]
        except GantryError:
            pass  # the connection responds with the text of the error
        else:
            answer.encode()
        invariants.check(machine)


async def test_every_code_with_nonsense_beside_honest_brokers(
    controller: Controller, client: ControllerClient, brokers: list[ScriptedBroker]
) -> None:
    before = controller.replicas.snapshot()
    hostile = ControllerClient(client.addr)
    for code in sorted(controller.request_codes - {Request.UPDATE_CONTROLLER_CONFIG}):
        for body in GARBAGE:
            await hostile.ask(code, body)
            await hostile.ask(code, body, **NONSENSE)
    assert controller.replicas.snapshot() == before
    assert (await brokers[0].alter(1)).code == 0
    await hostile.close()


async def test_heartbeats_of_unregistered_brokers_take_no_memory(
    controller: Controller, client: ControllerClient, brokers: list[ScriptedBroker]
) -> None:
    stranger = ScriptedBroker(client, "x", "127.0.0.1:1")
    for number in range(100):
        stranger.name, stranger.broker_id = f"x{number}", number
        assert (await stranger.beat()).code == 0
        assert (await brokers[0].beat(brokerId=number + 3)).code == 0
    assert controller.varz()["broker_sets"].keys() == {"broker-a"}
    assert len(controller._live) == 2


async def test_oversized_requests_are_refused_before_they_reach_the_log(
    client: ControllerClient, brokers: list[ScriptedBroker]
) -> None:
    names = [f"broker-{number}" for number in range(QUERIED_SETS_MAX + 1)]
    answer = await client.ask(Request.CONTROLLER_GET_SYNC_STATE_DATA, names)
    assert answer.code == Code.CONTROLLER_INVALID_REQUEST
    answer = await client.ask(Request.CONTROLLER_GET_SYNC_STATE_DATA, b" " * (BODY_BYTES_MAX + 1))
    assert answer.code == Code.CONTROLLER_INVALID_REQUEST
    assert (await brokers[0].alter(*range(100))).code == Code.CONTROLLER_INVALID_REQUEST
    long = ScriptedBroker(client, "n" * (NAME_CHARS_MAX + 1), "127.0.0.1:1")
    long.broker_id = 1
    assert (await long.elect()).code == Code.CONTROLLER_INVALID_REQUEST


async def test_a_flood_is_answered_within_the_limit_of_waiting_requests(
    client: ControllerClient, brokers: list[ScriptedBroker]
) -> None:
    flood = 3 * REQUESTS_MAX
    questions = [
        client.ask(Request.CONTROLLER_GET_NEXT_BROKER_ID, clusterName="c", brokerName=f"f{number}")
        for number in range(flood)
    ]
    codes = [answer.code for answer in await asyncio.gather(*questions)]
    assert set(codes) <= {Code.SUCCESS, Code.SYSTEM_BUSY}
    assert codes.count(Code.SUCCESS) >= REQUESTS_MAX
    assert (await brokers[0].alter(1)).code == 0
