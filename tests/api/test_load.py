"""A real console under floods of requests and sign-ins."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import websockets

from console.environment import NUMBERS
from console.web.admission import MONITORING_SLOTS
from tests.support.console_program import ADMIN_PASSWORD, ConsoleProgram

pytestmark = pytest.mark.timeout(300)

JSON = "application/json"
REQUESTS = 2_000
DEADLINE_S = 120.0
SAMPLE_INTERVAL_S = 0.05
#: Threads besides those of requests: event loop, gateway, name look-ups and metrics.
OTHER_THREADS_MAX = 40
#: Libraries and templates that the first requests load; without limits, 2,000 requests keep
#: hundreds of megabytes.
GROWTH_BYTES_MAX = 100 * 1024 * 1024


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleProgram]:
    with ConsoleProgram(tmp_path) as program:
        yield program


async def get(port: int, path: str) -> tuple[int, bytes]:
    """Return status and head of one response."""
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        answer = await reader.read()
        writer.close()
    return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[0].lower()


async def test_two_thousand_requests_at_once_are_all_answered(console: ConsoleProgram) -> None:
    process = psutil.Process(console.pid)
    before = process.memory_info().rss
    flood = [asyncio.create_task(get(console.port, "/accounts/login/")) for _ in range(REQUESTS)]
    threads_max, probes = 0, []
    while not all(task.done() for task in flood):
        threads_max = max(threads_max, process.num_threads())
        probes.append((await get(console.port, "/livez"))[0])
        await asyncio.sleep(SAMPLE_INTERVAL_S)
    answers = await asyncio.gather(*flood)
    statuses = Counter(status for status, _ in answers)
    growth = process.memory_info().rss - before
    print(f"{dict(statuses)}; {threads_max} threads; {len(probes)} probes; +{growth >> 20} MiB")
    assert set(statuses) <= {200, 503}, console.output
    assert statuses[200] >= NUMBERS["REQUESTS_MAX"][2]
    assert all(b"retry-after: " in head for status, head in answers if status == 503)
    assert set(probes) == {200}
    assert threads_max <= NUMBERS["REQUESTS_MAX"][2] + MONITORING_SLOTS + OTHER_THREADS_MAX
    assert growth < GROWTH_BYTES_MAX
    assert (await get(console.port, "/accounts/login/"))[0] == 200
    assert "Traceback" not in console.output


def sign_in(console: ConsoleProgram, password: str, **headers: str) -> tuple[int, str]:
    """Sign in as admin through the path of Classic; return status and error."""
    body = json.dumps({"username": "admin", "password": password})
    response, answer = console.request(
        "POST", "/login/login.do", body, Content_Type=JSON, **headers
    )
    return response.status, str(json.loads(answer)["errMsg"])


def test_a_forged_address_does_not_pass_the_limit_of_sign_ins(console: ConsoleProgram) -> None:
    statuses = [
        sign_in(console, "wrong", X_Forwarded_For=f"192.0.2.{number}")[0] for number in range(5)
    ]
    assert statuses == [200, 200, 200, 200, 429]
    assert sign_in(console, ADMIN_PASSWORD, X_Forwarded_For="192.0.2.99")[0] == 429


def test_the_address_from_a_trusted_proxy_counts(tmp_path: Path) -> None:
    with ConsoleProgram(tmp_path, CONSOLE_TRUSTED_PROXIES="127.0.0.0/8") as console:
        # The proxy appends the address of the client to the client's own header.
        forged = "198.51.100.7, 192.0.2.1"
        statuses = [sign_in(console, "wrong", X_Forwarded_For=forged)[0] for _ in range(5)]
        assert statuses[-1] == 429
        assert sign_in(console, ADMIN_PASSWORD, X_Forwarded_For="198.51.100.8, 192.0.2.1")[0] == 429
        assert sign_in(console, ADMIN_PASSWORD, X_Forwarded_For="192.0.2.2")[0] == 200


async def test_live_pages_beyond_the_limit_are_refused_with_a_time(tmp_path: Path) -> None:
    with ConsoleProgram(tmp_path, CONSOLE_WEBSOCKETS_MAX="1") as console:
        body = json.dumps({"username": "admin", "password": ADMIN_PASSWORD})
        response, _ = console.request("POST", "/login/login.do", body, Content_Type=JSON)
        cookie = next(
            each for each in response.headers.get_all("Set-Cookie", []) if "gantry_session" in each
        )
        url = f"ws://127.0.0.1:{console.port}/ws/clusters/local/overview"
        options = {"additional_headers": {"Cookie": cookie.partition(";")[0]}, "proxy": None}
        async with websockets.connect(url, **options) as first:
            await first.recv()
            with pytest.raises(websockets.InvalidStatus) as refused:
                await websockets.connect(url, **options)
            answer = refused.value.response
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
            assert b"CONSOLE_WEBSOCKETS_MAX" in (answer.body or b"")
        assert "ERROR" not in console.output
        assert "Traceback" not in console.output


def test_https_needs_no_header(tmp_path: Path) -> None:
    with ConsoleProgram(tmp_path, CONSOLE_HTTPS="true") as console:
        response, _ = console.request("GET", "/accounts/login/")
        assert response.headers["Strict-Transport-Security"]
    with ConsoleProgram(tmp_path) as console:
        response, _ = console.request("GET", "/accounts/login/", X_Forwarded_Proto="https")
        assert response.headers["Strict-Transport-Security"] is None
