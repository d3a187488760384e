"""The kill of a master by the console: only with the switch of the demo, and for its cluster."""

import socket
import threading
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.audit.models import AuditRow
from tests.api.conftest import browser
from tests.support.cluster import Cluster

PATH = "/clusters/local/replicas/broker-a/kill/"


class Switch:
    """Answers one line per connection, as the launcher does."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.answer = "killed broker\n"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connected, _addr = self._listener.accept()
            except OSError:
                return
            with connected, connected.makefile("rb") as lines:
                line = lines.readline().decode().strip()
                if line == "end":
                    return
                self.lines.append(line)
                connected.sendall(self.answer.encode())

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            last.sendall(b"end\n")
        self._thread.join()
        self._listener.close()


@pytest.fixture
def switch(local: Cluster, settings: Settings) -> Iterator[Switch]:
    found = Switch()
    settings.DEMO_CONTROL = f"{found.port} secret-token {local.namesrv_addr}"
    yield found
    found.close()


def test_without_the_demo_nobody_kills_a_master(page: Client, settings: Settings) -> None:
    assert "/kill/" not in page.get("/clusters/local/replicas/").content.decode()
    for text in ("", "1 token other:9876", "x token", "1"):
        settings.DEMO_CONTROL = text
        assert page.get(PATH).status_code == 404
        assert page.post(PATH).status_code == 404


def test_the_demo_kills_the_master(
    page: Client, local: Cluster, switch: Switch, operator: User
) -> None:
    assert PATH in page.get("/clusters/local/replicas/").content.decode()
    shown = page.get(PATH).content.decode()
    assert local.broker_addr in shown
    assert "secret-token" not in shown
    assert browser(operator).post(PATH).status_code == 403
    assert switch.lines == []
    done = page.post(PATH)
    assert done.headers["Location"] == "/clusters/local/replicas/broker-a/"
    port = local.broker_addr.rpartition(":")[2]
    assert switch.lines == [f"secret-token kill {port}"]
    row = AuditRow.objects.get(action="replica.kill", result="done")
    assert (row.after or {})["killed"] == local.broker_addr
    switch.answer = "refused broker does not run\n"
    refused = page.post(PATH)
    assert refused.status_code == 409
    assert "does not run" in refused.content.decode()


def test_a_demo_that_does_not_answer_is_named(
    page: Client, local: Cluster, settings: Settings
) -> None:
    settings.DEMO_CONTROL = f"1 token {local.namesrv_addr}"
    assert page.post(PATH).status_code == 503
