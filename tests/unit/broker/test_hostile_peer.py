"""A hostile client on a real connection gets errors, stays connected, delays no other client."""

import asyncio
from collections.abc import Callable

from core_broker.remoting.codes import RequestCode
from tests.support.eventually import eventually
from tests.unit.broker.conftest import MakeBroker, WireClient

Connect = Callable[[str], WireClient]

NOT_HERE = {39, 40, 103, 105, 220, 221, 326}
GARBAGE = (b"", b"{", b"[" * 1000, b"\xff" * 100, b'{"groupName":"a b","clientID":{}}')
NONSENSE = {
    "topic": "../../x",
    "b": "T",
    "queueId": "-2147483648",
    "e": "2147483647",
    "offset": "-9223372036854775808",
    "sysFlag": "4",
    "consumerGroup": "%RETRY%" * 40,
}


async def test_every_code_with_nonsense_beside_an_honest_client(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker()
    hostile, honest = connect(broker.addr), connect(broker.addr)

    async def attack() -> None:
        for code in RequestCode:
            for body in GARBAGE:
                answer = await hostile.request(code, dict(NONSENSE), body)
                if code in NOT_HERE:
                    assert answer.code == 3

    async def work() -> int:
        for number in range(200):
            answer = await honest.send("Honest", b"%d" % number)
            assert answer.code == 0, answer.remark
        return int(answer.ext_fields["queueOffset"])

    _, last = await asyncio.gather(attack(), work())
    assert last == 199
    assert len(broker._server.connections) == 2, "no client was disconnected"
    assert (await hostile.send("Honest", b"made peace")).code == 0


async def test_endless_pulls_are_bounded_and_dropped(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker()
    hostile = connect(broker.addr)
    await hostile.send("T")
    pulls = [
        asyncio.create_task(hostile.pull("T", 1, suspend_timeout_millis=2**62)) for _ in range(50)
    ]
    held = broker._parts.requests.held_pulls
    await eventually(lambda: len(held) == 50)
    await hostile.close()
    await asyncio.gather(*pulls, return_exceptions=True)
    await eventually(lambda: not len(held))
