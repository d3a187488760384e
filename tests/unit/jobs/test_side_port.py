"""The side port of worker and scheduler: when a process is ready, and when a restart helps."""

import socket

import pytest
from pytest_django.fixtures import Settings

from console import side_port
from console.side_port import LATE_S, LIFELESS_S, Pulse, start_side_port
from tests.support.cluster import free_broker_port
from tests.up.gantry import status_of


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(side_port, "PULSE", Pulse(clock))
    monkeypatch.setattr(side_port, "redis_problem", lambda: None)
    return clock


def statuses(port: int) -> tuple[int, int]:
    """The statuses of /livez and /readyz."""
    return status_of(f"http://127.0.0.1:{port}/livez"), status_of(f"http://127.0.0.1:{port}/readyz")


def test_probes_follow_the_turns_of_the_loop(
    clock: Clock, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SIDE_PORT = port = free_broker_port()
    served = start_side_port()
    assert served is not None
    assert statuses(port) == (200, 503), "no turn yet"
    side_port.PULSE.turned()
    assert statuses(port) == (200, 200)
    clock.now_s += LATE_S + 1
    assert statuses(port) == (200, 503)
    clock.now_s += LIFELESS_S
    assert statuses(port) == (503, 503)
    # A restart does not bring Redis back, and would end running jobs.
    monkeypatch.setattr(side_port, "redis_problem", lambda: "away")
    assert statuses(port) == (200, 503)
    side_port.PULSE.turned()
    assert statuses(port) == (200, 200)
    served.close()


def test_a_loop_that_never_turned_is_lifeless_at_last(clock: Clock) -> None:
    clock.now_s += LIFELESS_S + 1
    assert side_port.PULSE.lifelessness()


def test_a_used_port_ends_the_start(settings: Settings) -> None:
    with socket.create_server(("", 0)) as used:
        settings.SIDE_PORT = used.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            start_side_port()
