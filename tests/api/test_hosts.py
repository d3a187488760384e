"""Host names of the console, and readers of its metrics."""

import json
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from console.asgi import application
from tests.support.cluster import Cluster
from tests.support.console_program import ConsoleProgram
from tests.support.sockets import Socket

pytestmark = pytest.mark.timeout(400)

REBOUND = {"host": "rebound.example"}


def test_an_unknown_host_name_gets_a_page_with_the_setting(db: None) -> None:
    answer = Client(headers={"host": "rebound.example:8082"}).get("/accounts/login/")
    assert answer.status_code == 400
    text = answer.content.decode()
    assert "“rebound.example”" in text
    assert "CONSOLE_ALLOWED_HOSTS" in text
    assert "csrfmiddlewaretoken" not in text
    answer = Client(headers={**REBOUND, "Accept-Language": "zh-CN"}).get("/")
    assert "未知的主机名" in answer.content.decode()
    answer = Client(headers=REBOUND).get("/api/v1/clusters")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "CONSOLE_ALLOWED_HOSTS" in json.loads(answer.content)["detail"]


def test_a_hostile_host_name_is_escaped_and_cut(db: None) -> None:
    answer = Client(headers={"host": "<script>" + "x" * 5000}).get("/")
    assert answer.status_code == 400
    assert "<script>x" not in answer.content.decode()
    assert "x" * 300 not in answer.content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("host", "allowed"), [(b"rebound.example", False), (b"testserver", True)])
async def test_a_websocket_of_another_host_is_denied(host: bytes, allowed: bool) -> None:
    headers = [(b"host", host), (b"origin", b"http://" + host)]
    async with Socket(application, "/ws/nothing", headers) as socket:
        assert socket.accepted is allowed


@pytest.mark.parametrize("path", ["/metrics", "/varz"])
def test_metrics_are_for_this_machine_or_a_token(
    db: None, local: Cluster, settings: Settings, path: str
) -> None:
    assert Client().get(path).status_code == 200
    answer = Client(REMOTE_ADDR="192.0.2.9").get(path)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert b"CONSOLE_METRICS_TOKEN_FILE" in answer.content
    assert Client(headers={"X-Forwarded-For": "127.0.0.1"}).get(path).status_code == 401
    settings.METRICS_TOKEN = b"0123456789abcdef"
    assert Client().get(path).status_code == 401
    told = Client(REMOTE_ADDR="192.0.2.9", headers={"Authorization": "Bearer 0123456789abcdef"})
    assert told.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_probes_are_open(db: None, local: Cluster, path: str) -> None:
    assert Client(REMOTE_ADDR="192.0.2.9").get(path).status_code == 200


def test_a_real_console_knows_its_names_and_a_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    with ConsoleProgram(
        tmp_path / "home",
        CONSOLE_ALLOWED_HOSTS="gantry.example.org",
        CONSOLE_METRICS_TOKEN_FILE=str(token),
    ) as console:

        def status(path: str, **headers: str) -> int:
            return console.request("GET", path, **headers)[0].status

        for host in ("localhost", "127.0.0.1:8082", "gantry.example.org"):
            assert status("/accounts/login/", Host=host) == 200
        assert status("/accounts/login/", Host="rebound.example") == 400
        # A probe may use any name; there is no cluster, so the console is not ready.
        assert status("/livez", Host="rebound.example") == 200
        assert status("/readyz", Host="rebound.example") == 503
        assert status("/metrics") == 401
        assert status("/metrics", Authorization="Bearer 0123456789abcdef") == 200
        assert "Invalid HTTP_HOST" not in console.output
