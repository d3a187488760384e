"""processors/kicks.py: the connections of a client are closed, with a logged reason."""

import logging

import pytest

from core_broker.processors import kicks
from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
    decode_body,
)
from core_broker.remoting.bodies.inventory import KickedClientBody
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_harness import BrokerHarness, Peer


async def beat(broker: BrokerHarness, client: str, *groups: str, producer: str = "") -> Peer:
    """Connect a client by its heartbeat."""
    peer = broker.peer()
    body = HeartbeatData(
        client_id=client,
        consumer_data_set=[
            ConsumerData(group_name=group, subscription_data_set=[SubscriptionData(topic="T")])
            for group in groups
        ],
        producer_data_set=[ProducerData(group_name=producer)] if producer else [],
    )
    answer = await broker.ask(RequestCode.HEART_BEAT, body=body, peer=peer)
    assert answer.code == 0, answer.remark
    return peer


async def kick(broker: BrokerHarness, peer: Peer | None = None, **fields: str) -> RemotingCommand:
    header = {"clientId": "c@1", "reason": "stuck", **fields}
    return await broker.ask(RequestCode.KICK_CLIENT, header, peer=peer or broker.peer())


def closed(answer: RemotingCommand) -> KickedClientBody:
    assert answer.code == 0, answer.remark
    return decode_body(KickedClientBody, answer.body)


async def test_every_connection_of_the_client_is_closed_and_logged(
    broker: BrokerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = await beat(broker, "c@1", "G", "H")
    maker = await beat(broker, "c@1", producer="P")
    other = await beat(broker, "c@2", "G")
    with caplog.at_level(logging.WARNING, logger=kicks.__name__):
        body = closed(await kick(broker, reason=" one queue is stuck "))
    assert (set(body.addrs), body.left) == ({consumer.peer, maker.peer}, 0)
    assert consumer.closed_for == maker.closed_for == "kicked: one queue is stuck"
    assert not other.closed_for
    (line,) = caplog.messages
    assert line.startswith("client c@1 is kicked: 2 connections, by (no access control) at 127.0.")
    assert line.endswith("reason: one queue is stuck")


async def test_a_group_limits_the_kick(broker: BrokerHarness) -> None:
    in_group = await beat(broker, "c@1", "G")
    elsewhere = await beat(broker, "c@1", "H", producer="G")
    assert closed(await kick(broker, group="G")).addrs == [in_group.peer]
    assert not elsewhere.closed_for


async def test_members_that_stay_divide_the_queues_anew(broker: BrokerHarness) -> None:
    kicked, stays = await beat(broker, "c@1", "G"), await beat(broker, "c@2", "G")
    closed(await kick(broker))
    # The server reports a closed connection to the processor.
    broker.requests.clients.disconnected(kicked)  # type: ignore[arg-type]
    stays.told.clear()
    broker.requests.clients._notify()
    assert [each.code for each in stays.told] == [RequestCode.NOTIFY_CONSUMER_IDS_CHANGED]
    assert (await kick(broker)).code == 1


async def test_the_connection_of_the_request_stays_open(broker: BrokerHarness) -> None:
    own = await beat(broker, "c@1", "G")
    answer = await kick(broker, own)
    assert (answer.code, own.closed_for) == (1, "")
    assert "the only connection" in str(answer.remark)
    second = await beat(broker, "c@1", "G")
    assert closed(await kick(broker, own)).addrs == [second.peer]
    assert not own.closed_for


async def test_connections_of_one_kick_are_bounded(
    broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kicks, "CONNECTIONS_PER_KICK_MAX", 2)
    peers = [await beat(broker, "c@1", "G") for _ in range(3)]
    body = closed(await kick(broker))
    assert (len(body.addrs), body.left) == (2, 1)
    assert [bool(peer.closed_for) for peer in peers] == [True, True, False]


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": ""},
        {"reason": "  "},
        {"reason": "x" * (kicks.REASON_CHARS_MAX + 1)},
        {"reason": "one\nWARNING two"},
        {"reason": "one\rtwo"},
        {"reason": "\x1b[31mred"},
        {"reason": "\x00"},
        {"reason": "left\u202eright"},
        {"reason": "line\u2028separator"},
        {"clientId": ""},
        {"clientId": "c" * 10_000},
        {"clientId": "nobody"},
        {"group": "no group"},
    ],
)
async def test_hostile_requests_close_nothing(
    broker: BrokerHarness, fields: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    peer = await beat(broker, "c@1", "G")
    answer = await kick(broker, **fields)
    assert (answer.code, peer.closed_for, caplog.messages) == (1, "", [])
    assert str(answer.remark).isprintable()


async def test_names_of_a_client_cannot_forge_log_lines(
    broker: BrokerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    name = "c\nWARNING forged"
    await beat(broker, name, "G\n2")
    closed(await kick(broker, clientId=name, group="G\n2"))
    assert "\n" not in next(text for text in caplog.messages if "is kicked" in text)
