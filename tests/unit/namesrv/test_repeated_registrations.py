"""Brokers say the same every 30 s: it is known without being read, and never a reason to forget."""

from msgspec import json

from namesrv.server import NameServer
from tests.support.eventually import eventually
from tests.unit.namesrv.asking import Asker
from tests.unit.namesrv.registrations import broker, registration, topic


async def test_a_repeated_registration_counts_as_a_sign_of_life_and_changes_nothing(
    asker: Asker,
) -> None:
    body = registration(topic("T1"))
    await asker.ask(103, broker(), body)
    await asker.ask(205, {"brokerName": "broker-a"})
    await asker.ask(103, broker(), body)
    route = json.decode((await asker.ask(105, {"topic": "T1"}, version=401)).body)
    assert route["queueDatas"][0]["perm"] == 4


async def test_a_slave_that_becomes_master_brings_its_topics_with_the_same_body(
    asker: Asker,
) -> None:
    body = registration(topic("T1"))
    await asker.ask(103, broker(brokerId="1"), body)
    assert (await asker.ask(105, {"topic": "T1"})).code == 17
    await asker.ask(103, broker(brokerId="0"), body)
    assert (await asker.ask(105, {"topic": "T1"})).code == 0


async def test_a_broker_that_gets_its_place_back_brings_its_topics_with_the_same_body(
    asker: Asker, server: NameServer
) -> None:
    body = registration(topic("T1"))
    await asker.ask(103, broker(), body)
    # One of the same name takes its place, and is gone again while the first one goes on.
    other = Asker(asker.addr)
    await other.ask(103, broker(addr="127.0.0.1:20999"), registration(topic("T2"), counter=2))
    await other.client.close()
    await eventually(lambda: len(server.routes.live) == 1)
    assert (await asker.ask(105, {"topic": "T1"})).code == 17
    await asker.ask(103, broker(), body)
    assert (await asker.ask(105, {"topic": "T1"})).code == 0
