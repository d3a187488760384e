"""The side port over a real socket: pages, status codes, hostile clients."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.monitoring import side_port
from core_broker.monitoring.metrics import Family, Metrics
from core_broker.monitoring.readiness import Readiness
from core_broker.monitoring.side_port import SidePort, serve_http


@pytest.fixture
async def side() -> AsyncIterator[SidePort]:
    metrics = Metrics({"cluster": "c", "node_type": "broker"})
    metrics.source(
        lambda: [
            Family("rocketmq_messages_in_total", [({"topic": 'T"1'}, 3), ({"topic": "T2"}, 4)]),
            Family("rocketmq_topic_number", [({}, 2)]),
            Family("rocketmq_consumer_lag_messages", []),
        ]
    )
    readiness = Readiness()
    readiness.set("store")
    started = await serve_http("127.0.0.1", 0, readiness, lambda: {"brokers": {"b": 1}}, metrics)
    yield started
    await started.close()


async def exchange(side: SidePort, data: bytes) -> tuple[int, dict[str, str], str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", side.port)
    writer.write(data)
    try:
        async with asyncio.timeout(60):
            answer = await reader.read()
    except ConnectionResetError:  # closed before the request was read
        answer = b""
    writer.close()
    await asyncio.wait({asyncio.ensure_future(writer.wait_closed())})
    if not answer:
        return 0, {}, ""
    head, _, body = answer.decode().partition("\r\n\r\n")
    first, *rest = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
    assert int(headers["content-length"]) == len(body.encode())
    return int(first.split()[1]), headers, body


async def get(side: SidePort, path: str) -> tuple[int, str]:
    status, _, body = await exchange(
        side, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    )
    return status, body


async def test_liveness_and_readiness(side: SidePort) -> None:
    assert await get(side, "/livez") == (200, "ok\n")
    assert await get(side, "/readyz") == (200, "ok\n")
    side.readiness.set("registered", "no name server has answered")
    assert await get(side, "/livez") == (200, "ok\n")
    assert await get(side, "/healthz") == (
        503,
        "[-] registered: no name server has answered\nnot ready\n",
    )
    assert await get(side, "/readyz?verbose") == (
        503,
        "[+] store\n[-] registered: no name server has answered\nnot ready\n",
    )
    assert (await get(side, "/readyz?exclude=store"))[0] == 503
    assert await get(side, "/readyz?verbose&exclude=registered") == (200, "[+] store\nok\n")
    assert await get(side, "/readyz?exclude=registered&exclude=store") == (200, "ok\n")


def test_ready_means_that_every_check_passes() -> None:
    readiness = Readiness()
    assert readiness.ready
    readiness.set("disk", "full")
    assert readiness.report() == {"disk": "full"}
    assert not readiness.ready


async def test_every_report_calls_the_checks(side: SidePort) -> None:
    reasons = iter(["disk full", ""])
    side.readiness.check("disk", lambda: next(reasons))
    assert (await get(side, "/readyz"))[0] == 503
    assert (await get(side, "/readyz"))[0] == 200


async def test_metrics_are_prometheus_text_with_rocketmqs_names(side: SidePort) -> None:
    status, body = await get(side, "/metrics")
    assert status == 200
    lines = body.splitlines()
    labels = 'cluster="c",node_type="broker"'
    assert "# TYPE rocketmq_messages_in_total counter" in lines
    assert f'rocketmq_messages_in_total{{{labels},topic="T\\"1"}} 3.0' in lines
    assert f"rocketmq_topic_number{{{labels}}} 2.0" in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
    assert (await get(side, "/metrics"))[0] == 200


async def test_varz_is_json(side: SidePort) -> None:
    status, body = await get(side, "/varz")
    assert status == 200
    assert json.loads(body) == {"brokers": {"b": 1}}


async def test_metrics_and_tables_need_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    side = await serve_http(
        "127.0.0.1", 0, Readiness(), lambda: {"a": 1}, Metrics(), token_file=str(token)
    )
    for path in ("/metrics", "/varz"):
        status, headers, body = await exchange(side, f"GET {path} HTTP/1.1\r\n\r\n".encode())
        assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="metrics"')
        assert "metricsTokenFile" in body
        sent = f"GET {path} HTTP/1.1\r\nAUTHORIZATION:Bearer 0123456789abcdef\r\n\r\n"
        assert (await exchange(side, sent.encode()))[0] == 200
    assert await get(side, "/livez") == (200, "ok\n")
    assert await get(side, "/readyz") == (200, "ok\n")
    await side.close()


async def test_a_web_page_cannot_read_through_the_browser_of_this_machine(side: SidePort) -> None:
    head = b"GET /varz HTTP/1.1\r\nHost: rebound.example:5559\r\n\r\n"
    assert (await exchange(side, head))[0] == 401


async def test_other_paths_and_methods(side: SidePort) -> None:
    assert (await get(side, "/nope"))[0] == 404
    assert "/varz" in (await get(side, "/"))[1]
    status, headers, _ = await exchange(side, b"POST /livez HTTP/1.1\r\n\r\n")
    assert status == 405
    assert headers["allow"] == "GET"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"\x00\xff\xfe\r\n\r\n", 400),
        (b"GET livez HTTP/1.1\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 400),
        (b"GET /\xff\x00%zz HTTP/1.1\r\n\r\n", 404),
        (b"GET /livez\r\n\r\n", 200),
    ],
)
async def test_hostile_requests_are_answered(side: SidePort, data: bytes, status: int) -> None:
    assert (await exchange(side, data))[0] == status
    assert await get(side, "/livez") == (200, "ok\n")


async def test_a_silent_client_is_disconnected(
    side: SidePort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_port, "REQUEST_SECONDS_MAX", 0.05)
    assert await exchange(side, b"GET /livez HT") == (0, {}, "")


async def test_connections_are_bounded(side: SidePort, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_port, "CONNECTIONS_MAX", 1)
    _, holder = await asyncio.open_connection("127.0.0.1", side.port)
    async with asyncio.timeout(60):
        while not side.open_requests:
            await asyncio.sleep(0)
    assert await exchange(side, b"GET /livez HTTP/1.1\r\n\r\n") == (0, {}, "")
    holder.close()
    await holder.wait_closed()


async def test_a_page_that_fails_answers_500_and_is_logged(
    side: SidePort, caplog: pytest.LogCaptureFixture
) -> None:
    side.readiness.check("bug", lambda: str(1 // 0))
    assert (await get(side, "/readyz"))[0] == 500
    assert "the page /readyz failed" in caplog.text


async def test_a_port_in_use_raises_oserror(side: SidePort) -> None:
    with pytest.raises(OSError, match="in use"):
        await serve_http("127.0.0.1", side.port, Readiness(), dict, Metrics())


async def test_a_default_port_in_use_is_replaced(
    side: SidePort, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(side_port, "BROKER_HTTP_PORT", side.port)
    second = await serve_http("127.0.0.1", side.port, Readiness(), dict, Metrics())
    assert second.port not in (0, side.port)
    assert await get(second, "/livez") == (200, "ok\n")
    assert f"port {side.port} is in use" in caplog.text
    await second.close()
