"""Bounds of requests, bodies and WebSockets, with an application whose work the test controls."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pytest_django import Settings

from console.metrics import refused_total
from console.web import admission
from console.web.admission import Admission

Work = Callable[[dict[str, Any]], Awaitable[None]]


class Client:
    """One request or WebSocket: messages of the server in `sent`."""

    def __init__(self, path: str = "/", *, kind: str = "http", **headers: str) -> None:
        named = [
            (name.encode().replace(b"_", b"-"), text.encode()) for name, text in headers.items()
        ]
        self.scope: dict[str, Any] = {"type": kind, "path": path, "method": "GET", "headers": named}
        self.sent: list[dict[str, Any]] = []
        self.coming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.reads = asyncio.Event()
        self.reads.set()

    def send_part(self, part: bytes, *, more: bool) -> None:
        self.coming.put_nowait({"type": "http.request", "body": part, "more_body": more})

    async def take(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body":
            await self.reads.wait()

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])


class Site:
    """Admission in front of an application that works until `finish` is set."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.bodies: list[bytes] = []
        self.finish = asyncio.Event()
        self.admission = Admission(self._work)

    async def _work(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if admission.has_body(scope):
            self.bodies.append((await receive())["body"])
        self.began.append(scope["path"])
        if scope["path"] == "/fails":
            raise RuntimeError("the application failed")
        await self.finish.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    def visit(self, client: Client) -> "asyncio.Task[None]":
        return asyncio.create_task(self.admission(client.scope, client.coming.get, client.take))


async def turns() -> None:
    """Let all tasks run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def site(settings: Settings) -> Site:
    settings.REQUESTS_MAX = 1
    settings.REQUESTS_WAITING_MAX = 1
    settings.WEBSOCKETS_MAX = 1
    return Site()


async def test_requests_beyond_the_limits_are_refused_and_the_others_answered(site: Site) -> None:
    clients = [Client(f"/{number}") for number in range(3)]
    visits = [site.visit(client) for client in clients]
    await turns()
    assert site.began == ["/0"]
    assert [client.status for client in clients] == [None, None, 503]
    assert clients[2].headers[b"retry-after"] == b"2"
    assert b"CONSOLE_REQUESTS_MAX" in clients[2].sent[1]["body"]
    site.finish.set()
    await asyncio.gather(*visits)
    assert [client.status for client in clients] == [200, 200, 503]
    later = Client()
    await site.visit(later)
    assert later.status == 200


async def test_a_refusal_below_api_is_a_problem_and_counted(site: Site) -> None:
    before = refused_requests()
    visits = [site.visit(Client()), site.visit(Client())]
    await turns()
    client = Client("/api/v1/clusters")
    await site.visit(client)
    assert client.headers[b"content-type"] == b"application/problem+json"
    assert json.loads(client.sent[1]["body"])["status"] == 503
    assert refused_requests() == before + 1
    site.finish.set()
    await asyncio.gather(*visits)


def refused_requests() -> float:
    """The counter itself: other collectors of the registry ask the database."""
    samples = (sample for metric in refused_total.collect() for sample in metric.samples)
    return sum(
        sample.value
        for sample in samples
        if sample.name == "gantry_console_refused_total" and sample.labels == {"limit": "requests"}
    )


async def test_a_browser_gets_the_cause_in_both_languages(site: Site) -> None:
    visits = [site.visit(Client()), site.visit(Client())]
    await turns()
    browser = Client("/", accept="text/html,*/*;q=0.8")
    part = Client("/", accept="text/html", hx_request="true")
    await asyncio.gather(site.visit(browser), site.visit(part))
    page = browser.sent[1]["body"].decode()
    assert browser.headers[b"content-type"] == b"text/html; charset=utf-8"
    assert '<p lang="en">The console is busy: 1 requests run and 1 wait.' in page
    assert '<p lang="zh-hans">控制台繁忙' in page
    assert part.headers[b"content-type"] == b"text/plain; charset=utf-8"
    site.finish.set()
    await asyncio.gather(*visits)


async def test_a_refusal_of_monitoring_names_no_setting(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "WAIT_SECONDS_MAX", 0.01)
    clients = [Client("/metrics") for _ in range(admission.MONITORING_SLOTS + 1)]
    visits = [site.visit(client) for client in clients]
    await visits[-1]
    assert clients[-1].status == 503
    assert b"CONSOLE_REQUESTS_MAX" not in clients[-1].sent[1]["body"]
    site.finish.set()
    await asyncio.gather(*visits)


async def test_a_request_does_not_wait_forever(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "WAIT_SECONDS_MAX", 0.01)
    running, waiting = Client(), Client()
    visit = site.visit(running)
    await turns()
    await site.visit(waiting)
    assert waiting.status == 503
    site.finish.set()
    await visit


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/varz"])
async def test_monitoring_is_answered_while_all_slots_are_taken(site: Site, path: str) -> None:
    visits = [site.visit(Client("/0")), site.visit(Client("/1"))]
    await turns()
    monitor = Client(path)
    visits.append(site.visit(monitor))
    await turns()
    assert site.began == ["/0", path]
    site.finish.set()
    await asyncio.gather(*visits)
    assert monitor.status == 200


async def test_a_slow_sender_occupies_no_slot(site: Site) -> None:
    site.finish.set()
    slow = Client("/slow", content_length="2")
    visit = site.visit(slow)
    slow.send_part(b"a", more=True)
    await turns()
    quick = Client("/quick")
    await site.visit(quick)
    assert quick.status == 200
    slow.send_part(b"b", more=False)
    await visit
    assert (slow.status, site.bodies) == (200, [b"ab"])


async def test_a_slow_reader_occupies_no_slot(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "UNREAD_MAX", 1)
    site.finish.set()
    slow, slower = Client("/slow"), Client("/slower")
    visits = []
    for client in (slow, slower):
        client.reads.clear()
        visits.append(site.visit(client))
        await turns()
    assert site.began == ["/slow", "/slower"]
    refused = Client("/2"), Client("/3")
    visits += [site.visit(client) for client in refused]
    await turns()
    assert site.began == ["/slow", "/slower"], "the second unread response keeps its slot"
    assert [client.status for client in refused] == [None, 503]
    slow.reads.set()
    slower.reads.set()
    await asyncio.gather(*visits)
    assert refused[0].status == 200


async def test_a_failed_request_releases_its_slot(site: Site) -> None:
    with pytest.raises(RuntimeError, match="the application failed"):
        await site.visit(Client("/fails"))
    site.finish.set()
    client = Client()
    await site.visit(client)
    assert client.status == 200


async def test_a_body_over_the_limit_is_refused(site: Site, settings: Settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 3
    client = Client(transfer_encoding="chunked")
    client.send_part(b"12", more=True)
    client.send_part(b"34", more=True)
    await site.visit(client)
    assert (client.status, site.began) == (413, [])


async def test_bodies_together_are_limited(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "BODIES_BYTES_MAX", 3)
    first, second = Client(content_length="2"), Client(content_length="2")
    visit = site.visit(first)
    first.send_part(b"12", more=False)
    second.send_part(b"12", more=False)
    await turns()
    await site.visit(second)
    assert second.status == 503
    site.finish.set()
    await visit
    third = Client(content_length="3")
    third.send_part(b"123", more=False)
    await site.visit(third)
    assert (first.status, third.status) == (200, 200), "the memory is free again"


async def test_slow_bodies_are_limited_in_number_and_time(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "BODIES_MAX", 1)
    monkeypatch.setattr(admission, "BODY_SECONDS_MAX", 0.05)
    first, second = Client(content_length="2"), Client(content_length="2")
    visit = site.visit(first)
    await turns()
    await site.visit(second)
    assert second.status == 503
    await visit
    assert (first.status, site.began) == (408, [])


async def test_a_client_that_leaves_during_its_body_gets_no_work(site: Site) -> None:
    client = Client(content_length="2")
    client.send_part(b"1", more=True)
    client.coming.put_nowait({"type": "http.disconnect"})
    await site.visit(client)
    assert (client.sent, site.began) == ([], [])


@pytest.mark.django_db  # the consumer that denies the second one closes old connections
@pytest.mark.parametrize("can_answer", [True, False])
async def test_websockets_are_limited(site: Site, can_answer: bool) -> None:
    first, second = Client("/ws/a", kind="websocket"), Client("/ws/b", kind="websocket")
    if can_answer:
        second.scope["extensions"] = {"websocket.http.response": {}}
    second.coming.put_nowait({"type": "websocket.connect"})
    second.coming.put_nowait({"type": "websocket.disconnect", "code": 1006})
    visit = site.visit(first)
    await turns()
    await site.visit(second)
    assert site.began == ["/ws/a"]
    if can_answer:
        assert second.sent[0]["type"] == "websocket.http.response.start"
        assert (second.status, second.headers[b"retry-after"]) == (503, b"2")
    else:
        assert second.sent[0]["type"] == "websocket.close"
    site.finish.set()
    await visit
    await site.visit(Client("/ws/c", kind="websocket"))
    assert site.began == ["/ws/a", "/ws/c"]
