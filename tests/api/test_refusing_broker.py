"""A broker that refuses the console's requests: not an outage, and named as a refusal."""

from collections.abc import Iterator
from functools import partial

import pytest
from django.test import Client

from core_broker.remoting.codes import RequestCode, ResponseCode
from tests.api.conftest import Api
from tests.api.traffic import Traffic, poll
from tests.support.scripted_peer import ScriptedPeer, refuse

HOME = "/clusters/local"
NOWHERE = "127.0.0.1:1"
REASON = "no permission for the console"
REFUSED = "One broker or name server refused the request."
UNREACHABLE = "One broker or name server does not answer."


@pytest.fixture
def refusing(traffic: Traffic) -> Iterator[str]:
    """The name of a registered broker that refuses every request."""
    peer = ScriptedPeer()
    for code in RequestCode:
        peer.on(code, lambda _: refuse(ResponseCode.NO_PERMISSION, REASON))
    traffic.run(peer.__aenter__())
    with traffic.dead_broker(peer.addr, "refusing") as name:
        yield name
    traffic.run(peer.__aexit__(None, None, None))


def kinds(api: Api, path: str) -> dict[str, str]:
    return {one["broker"]: one["kind"] for one in api.get(path)["failures"]}


def text(page: Client, path: str) -> str:
    return page.get(f"{HOME}/{path}").content.decode()


def test_a_refusal_is_no_outage(api: Api, page: Client, refusing: str) -> None:
    for path in ("/topics", "/groups", "/brokers"):
        assert poll(partial(kinds, api, path)) == {refusing: "refused"}, path
    states = {one["name"]: one["state"] for one in api.get("/brokers")["items"]}
    assert states == {"broker-a": "up", refusing: "up"}
    for path in ("topics/", "groups/", "brokers/"):
        shown = text(page, path)
        assert REFUSED in shown, path
        assert REASON in shown, path
        assert UNREACHABLE not in shown, path


def test_refused_and_unreachable_brokers_are_told_apart(
    api: Api, page: Client, traffic: Traffic, refusing: str
) -> None:
    with traffic.dead_broker(NOWHERE) as dead:
        expected = {refusing: "refused", dead: "unreachable"}
        assert poll(lambda: kinds(api, "/topics") == expected)
        shown = text(page, "topics/")
        assert shown.index(UNREACHABLE) < shown.index(dead) < shown.index(REFUSED)
        assert shown.index(REFUSED) < shown.index(REASON)
