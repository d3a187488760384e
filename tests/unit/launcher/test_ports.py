import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.launcher import ports
from console.launcher.errors import EXIT_USAGE, StartError
from console.launcher.options import Options

ANY = Options(home=Path("var"), namesrv_port=0, broker_port=0, console_port=0)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_zero_takes_free_ports_that_all_differ() -> None:
    chosen = ports.choose_ports(ANY)
    numbers = [
        *(chosen.namesrv, chosen.namesrv_http, chosen.broker, chosen.broker_vip),
        *(chosen.broker_http, chosen.console, chosen.redis),
    ]
    assert len(set(numbers)) == len(numbers)
    assert chosen.broker_vip == chosen.broker - 2
    assert all(ports.is_free("127.0.0.1", number) for number in numbers)


@pytest.mark.parametrize(
    ("field", "option"),
    [
        ("namesrv_port", "--namesrv-port"),
        ("broker_port", "--broker-port"),
        ("console_port", "--console-port"),
    ],
)
def test_a_taken_port_is_named_with_its_option_and_holder(
    taken: int, field: str, option: str
) -> None:
    change: Any = {field: taken}
    with pytest.raises(StartError) as caught:
        ports.choose_ports(replace(ANY, **change))
    message = str(caught.value)
    assert message.startswith(f"Port {taken} on 127.0.0.1 cannot be used: Address already in use.")
    assert option in message
    assert f"process {os.getpid()}" in message
    assert caught.value.exit_code == EXIT_USAGE


def test_the_brokers_second_port_is_checked_too(taken: int) -> None:
    with pytest.raises(StartError, match=rf"Port {taken} \(the broker's VIP port\)"):
        ports.choose_ports(replace(ANY, broker_port=taken + 2))


def test_a_port_below_the_vip_distance_is_refused_without_a_crash() -> None:
    with pytest.raises(StartError, match="VIP port"):
        ports.choose_ports(replace(ANY, broker_port=1))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(StartError, match=r"on 192\.0\.2\.1 cannot be used: .* --host"):
        ports.choose_ports(replace(ANY, host="192.0.2.1", namesrv_port=9876))


def test_a_taken_side_port_is_replaced(taken: int) -> None:
    chosen: set[int] = set()
    assert ports.settle_side_port("127.0.0.1", taken, chosen) != taken
