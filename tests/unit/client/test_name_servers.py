"""Requests to name servers, and cached routes while the name servers are unreachable."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from core_broker.client.name_servers import NameServers, parse_addrs
from core_broker.client.route_cache import ROUTES_MAX, RouteCache
from core_broker.errors import ClientError, ProtocolError, RequestRefused, TransportError
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.scripted_peer import ScriptedPeer, ok, refuse

ROUTE = RequestCode.GET_ROUTEINFO_BY_TOPIC
CONFIG = RequestCode.GET_NAMESRV_CONFIG


@pytest.fixture
async def remoting() -> AsyncIterator[RemotingClient]:
    client = RemotingClient(name="test")
    yield client
    await client.close()


@pytest.fixture
async def peer() -> AsyncIterator[ScriptedPeer]:
    async with ScriptedPeer() as scripted:
        yield scripted


def question() -> RemotingCommand:
    return RemotingCommand.request(CONFIG)


@pytest.mark.parametrize(
    ("text", "addrs"),
    [
        ("h:1", ["h:1"]),
        ("h1:1;h2:2", ["h1:1", "h2:2"]),
        (" h1:1 , h2:2 ;; h1:1", ["h1:1", "h2:2"]),
        ("[::1]:9876", ["[::1]:9876"]),
    ],
)
def test_address_lists(text: str, addrs: list[str]) -> None:
    assert parse_addrs(text) == addrs


@pytest.mark.parametrize("text", ["", " ; ", "h", "h:", ":9876", "h:0", "h:65536", "h:x", "h:٣"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(ClientError):
        parse_addrs(text)


async def test_a_dead_name_server_is_passed_over_and_then_left_alone(
    remoting: RemotingClient, peer: ScriptedPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "randrange", lambda _: 0)
    servers = NameServers(remoting, f"127.0.0.1:1;{peer.addr}")
    for _ in range(3):
        assert (await servers.ask(question, 1000)).code == ResponseCode.SUCCESS
    assert servers._current == 1
    assert len(peer.requests) == 3


async def test_many_that_find_a_name_server_dead_agree_on_another(
    remoting: RemotingClient, peer: ScriptedPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "randrange", lambda _: 0)
    servers = NameServers(remoting, f"127.0.0.1:1;{peer.addr}")
    await asyncio.gather(*(servers.ask(question, 1000) for _ in range(4)))
    assert servers._current == 1


async def test_a_silent_name_server_leaves_time_for_the_others(
    remoting: RemotingClient, peer: ScriptedPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "randrange", lambda _: 0)
    async with ScriptedPeer() as silent:
        silent.on(CONFIG, lambda _: None)
        servers = NameServers(remoting, f"{silent.addr};{peer.addr}")
        assert (await servers.ask(question, 200)).code == ResponseCode.SUCCESS


async def test_when_all_are_away_the_last_failure_is_raised(remoting: RemotingClient) -> None:
    with pytest.raises(TransportError):
        await NameServers(remoting, "127.0.0.1:1;127.0.0.1:2").ask(question, 1000)


async def test_a_refusal_is_an_answer_and_ends_the_search(
    remoting: RemotingClient, peer: ScriptedPeer
) -> None:
    async with ScriptedPeer() as other:
        for each in (peer, other):
            each.on(CONFIG, lambda _: refuse(22, "none"))
        with pytest.raises(RequestRefused):
            await NameServers(remoting, f"{peer.addr};{other.addr}").ask(question, 1000)
        assert len(peer.requests) + len(other.requests) == 1


async def test_changes_go_to_all_even_when_one_fails(
    remoting: RemotingClient, peer: ScriptedPeer
) -> None:
    servers = NameServers(remoting, f"127.0.0.1:1;{peer.addr}")
    with pytest.raises(TransportError):
        await servers.ask_all(question, 1000)
    assert len(peer.requests) == 1


def cache(remoting: RemotingClient, peer: ScriptedPeer) -> RouteCache:
    return RouteCache(NameServers(remoting, peer.addr), 300)


async def test_a_route_is_asked_for_once(remoting: RemotingClient, peer: ScriptedPeer) -> None:
    peer.serve_route(["T"], {"b": "h:1"})
    routes = cache(remoting, peer)
    results = await asyncio.gather(*(routes.route("T") for _ in range(50)))
    assert len(peer.received(ROUTE)) == 1
    assert {id(result) for result in results} == {id(results[0])}
    assert routes.addr("b") == "h:1"
    assert routes.broker_addrs(masters_only=True) == ["h:1"]


async def test_a_cancelled_caller_does_not_cancel_the_shared_request(
    remoting: RemotingClient, peer: ScriptedPeer
) -> None:
    peer.serve_route(["T"], {"b": "h:1"})
    routes = cache(remoting, peer)
    impatient = asyncio.create_task(routes.route("T"))
    patient = asyncio.create_task(routes.route("T"))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient).publish_queues


async def test_what_is_known_is_kept_while_the_name_server_is_away(
    remoting: RemotingClient, peer: ScriptedPeer
) -> None:
    peer.serve_route(["T"], {"b": "h:1"})
    routes = cache(remoting, peer)
    cached = await routes.route("T")
    peer.on(ROUTE, lambda _: None)
    routes.mark_stale("T")
    assert await routes.route("T") is cached
    with pytest.raises(TransportError):
        await routes.refresh()
    assert routes.addr("b") == "h:1"


async def test_what_is_known_is_kept_when_the_topic_vanishes(
    remoting: RemotingClient, peer: ScriptedPeer
) -> None:
    peer.serve_route(["T"], {"b": "h:1"})
    routes = cache(remoting, peer)
    cached = await routes.route("T")
    peer.serve_route([], {})
    routes.mark_stale("T")
    assert await routes.route("T") is cached


async def test_refresh_follows_a_broker_that_moved_and_forgets_one_that_left(
    remoting: RemotingClient, peer: ScriptedPeer
) -> None:
    peer.serve_route(["T"], {"a": "h:1", "b": "h:2"})
    routes = cache(remoting, peer)
    await routes.route("T")
    peer.serve_route(["T"], {"a": "h:9"})
    await routes.refresh()
    assert routes.addr("a") == "h:9"
    with pytest.raises(ClientError):
        routes.addr("b")


async def test_a_new_broker_is_reported(remoting: RemotingClient, peer: ScriptedPeer) -> None:
    news: list[str] = []
    routes = RouteCache(NameServers(remoting, peer.addr), 300, lambda: news.append("new"))
    peer.serve_route(["T", "U"], {"a": "h:1"})
    await routes.route("T")
    await routes.route("U")
    assert news == ["new"]
    peer.serve_route(["T", "U"], {"a": "h:2"})
    await routes.refresh()
    assert news == ["new", "new"]


async def test_a_route_that_is_no_route_is_refused(
    remoting: RemotingClient, peer: ScriptedPeer
) -> None:
    peer.on(ROUTE, lambda _: ok(body=b"\xff{]"))
    with pytest.raises(ProtocolError):
        await cache(remoting, peer).route("T")


async def test_the_cache_is_bounded(
    remoting: RemotingClient, peer: ScriptedPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_broker.client.route_cache.ROUTES_MAX", 4)
    peer.serve_route([f"T{n}" for n in range(9)], {"a": "h:1"})
    routes = cache(remoting, peer)
    for number in range(9):
        await routes.route(f"T{number}")
    assert list(routes._routes) == ["T5", "T6", "T7", "T8"]
    assert ROUTES_MAX >= 1000
