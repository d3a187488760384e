"""A returning master: newer offsets of its slaves, whatever name servers and slaves answer."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from core_broker.ha.newest_offsets import NewestOffsets
from core_broker.remoting.bodies import BrokerData, TopicRouteData, encode_body
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.state.consumer_offsets import ConsumerOffsets
from tests.support.broker_harness import BrokerHarness
from tests.support.scripted_peer import ScriptedPeer, ok, refuse

#: Messages in queue 0 of topic T of the master.
MESSAGES = 20


class Returned:
    """A master, a scripted name server and two scripted slaves."""

    def __init__(self, folder: Path) -> None:
        self.namesrv, self.first, self.second = ScriptedPeer(), ScriptedPeer(), ScriptedPeer()
        self.offsets = ConsumerOffsets()
        self.folder = folder

    async def begin(self) -> None:
        """Fill the master; all peers listen."""
        config = {"broker_name": "broker-a", "broker_cluster_name": "C"}
        self.master = BrokerHarness(self.folder, namesrv_addr=f" ;{self.namesrv.addr}; ", **config)
        self.master.topic("T")
        for _ in range(MESSAGES):
            await self.master.send("T", b"x", queue_id=0)
        self.route = TopicRouteData(
            broker_datas=[
                BrokerData(
                    cluster="C",
                    broker_name="broker-a",
                    broker_addrs={0: "192.0.2.1:1", 2: self.second.addr, 1: self.first.addr},
                )
            ]
        )
        self.namesrv.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, self._route)
        for slave in (self.first, self.second):
            slave.on(RequestCode.GET_ALL_CONSUMER_OFFSET, lambda _: ok(body=self.offsets.encode()))

    def _route(self, request: RemotingCommand) -> RemotingCommand:
        assert request.ext_fields["topic"] == "broker-a"
        return ok(body=encode_body(self.route))

    async def adopt(self) -> list[tuple[str, str, int, int]]:
        """Adopt; return the offsets of the master."""
        await NewestOffsets(self.master.ctx).adopt()
        return sorted(self.master.ctx.offsets.rows())


@pytest_asyncio.fixture
async def returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Returned]:
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    made = Returned(tmp_path)
    async with made.namesrv, made.first, made.second:
        await made.begin()
        yield made
        made.master.close()


async def test_the_larger_offset_wins(returned: Returned) -> None:
    own = returned.master.ctx.offsets
    own.commit("G", "T", 0, 10)
    own.commit("Ahead", "T", 0, 12)
    for group in ("G", "Ahead", "New"):
        returned.offsets.commit(group, "T", 0, 11)
    assert await returned.adopt() == [
        ("Ahead", "T", 0, 12),
        ("G", "T", 0, 11),
        ("New", "T", 0, 11),
    ]


async def test_offsets_without_their_messages_are_left_out(returned: Returned) -> None:
    returned.offsets.commit("G", "Missing", 0, 1)
    returned.offsets.commit("G", "T", 0, MESSAGES + 1)
    returned.offsets.commit("G", "T", 1, 1)
    returned.offsets.commit("Negative", "T", 0, -1)
    returned.offsets.commit("End", "T", 0, MESSAGES)
    assert await returned.adopt() == [("End", "T", 0, MESSAGES)]


@pytest.mark.parametrize(
    "answer",
    [
        refuse(1, "no"),
        ok(body=b""),
        ok(body=b'{"offsetTable":{"T@G":{"0":"many"}}}'),
        ok(body=b'{"offsetTable":{"T@G":{"0":1e99}}}'),
        ok(body=b'{"offsetTable":[{"0":1}]}'),
    ],
    ids=["refused", "empty", "no number", "no offset", "no table"],
)
async def test_a_slave_that_answers_something_else_does_not_prevent_the_next(
    returned: Returned, answer: RemotingCommand
) -> None:
    returned.offsets.commit("G", "T", 0, 7)
    returned.first.on(RequestCode.GET_ALL_CONSUMER_OFFSET, lambda _: answer)
    assert await returned.adopt() == [("G", "T", 0, 7)]


async def test_a_slave_that_is_gone_does_not_prevent_the_next(returned: Returned) -> None:
    returned.offsets.commit("G", "T", 0, 7)
    await returned.first.__aexit__(None, None, None)
    assert await returned.adopt() == [("G", "T", 0, 7)]


@pytest.mark.parametrize(
    ("cluster", "name", "broker_id"),
    [("Other", "broker-a", 1), ("C", "broker-b", 1), ("C", "broker-a", 0)],
)
async def test_other_brokers_are_not_asked(
    returned: Returned, cluster: str, name: str, broker_id: int
) -> None:
    returned.offsets.commit("G", "T", 0, 7)
    other = BrokerData(
        cluster=cluster, broker_name=name, broker_addrs={broker_id: returned.first.addr}
    )
    returned.route = TopicRouteData(broker_datas=[other])
    assert await returned.adopt() == []


@pytest.mark.parametrize("answer", [refuse(17, "no route"), ok(body=b"{"), ok(body=b"[]")])
async def test_a_name_server_without_a_route_fails_nothing(
    returned: Returned, answer: RemotingCommand
) -> None:
    returned.namesrv.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, lambda _: answer)
    assert await returned.adopt() == []


async def test_an_unreachable_name_server_fails_nothing(returned: Returned) -> None:
    await returned.namesrv.__aexit__(None, None, None)
    assert await returned.adopt() == []
