"""The registration that a broker repeats every 30 s is not decoded again and keeps the routes."""

import pytest
from msgspec import json

from core_broker.remoting.bodies import RegisterBrokerBody
from core_broker.remoting.command import RemotingCommand
from namesrv import route_processor
from namesrv.server import NameServer
from tests.support.eventually import eventually
from tests.unit.namesrv.namesrv_client import NamesrvClient
from tests.unit.namesrv.registrations import broker, registration, topic


async def test_a_repeated_registration_is_a_heartbeat_and_changes_no_route(
    client: NamesrvClient,
) -> None:
    body = registration(topic("T1"))
    await client.request(103, broker(), body)
    await client.request(205, {"brokerName": "broker-a"})
    await client.request(103, broker(), body)
    route = json.decode((await client.request(105, {"topic": "T1"}, version=401)).body)
    assert route["queueDatas"][0]["perm"] == 4


async def test_a_slave_that_becomes_master_registers_its_topics_with_the_same_body(
    client: NamesrvClient,
) -> None:
    body = registration(topic("T1"))
    await client.request(103, broker(brokerId="1"), body)
    assert (await client.request(105, {"topic": "T1"})).code == 17
    await client.request(103, broker(brokerId="0"), body)
    assert (await client.request(105, {"topic": "T1"})).code == 0


async def test_a_broker_that_regains_its_id_registers_its_topics_with_the_same_body(
    client: NamesrvClient, server: NameServer
) -> None:
    body = registration(topic("T1"))
    await client.request(103, broker(), body)
    # Another broker takes the same name and id, and disconnects while the first broker runs.
    other = NamesrvClient(client.addr)
    await other.request(103, broker(addr="127.0.0.1:20999"), registration(topic("T2"), counter=2))
    await other.remoting.close()
    await eventually(lambda: len(server.routes.live) == 1)
    assert (await client.request(105, {"topic": "T1"})).code == 17
    await client.request(103, broker(), body)
    assert (await client.request(105, {"topic": "T1"})).code == 0


async def test_topics_of_an_unchanged_version_are_not_decoded(
    client: NamesrvClient, server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After registrations of single topics, a broker repeats all topics with the same version."""
    decoded: list[int] = []
    decode = route_processor._registration

    def counting(request: RemotingCommand, *, compressed: bool) -> RegisterBrokerBody:
        decoded.append(len(request.body))
        return decode(request, compressed=compressed)

    monkeypatch.setattr(route_processor, "_registration", counting)
    first, second, third = topic("T1"), topic("T2"), topic("T3")
    await client.request(103, broker(), registration(first))
    await client.request(103, broker(), registration(second, counter=2))
    assert len(decoded) == 2
    await client.request(103, broker(), registration(first, second, counter=2))
    assert len(decoded) == 2
    assert len(server.routes.live) == 1
    for name in ("T1", "T2"):
        assert (await client.request(105, {"topic": name})).code == 0
    await client.request(103, broker(), registration(first, second, third, counter=3))
    assert len(decoded) == 3
    assert (await client.request(105, {"topic": "T3"})).code == 0
