"""`up --replicas`: controllers and replicas, their ports, settings and order."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from console.launcher.access import Access, open_access
from console.launcher.errors import EXIT_USAGE, StartError
from console.launcher.main import introduction
from console.launcher.options import Options, parse_options
from console.launcher.ports import Ports, choose_ports
from console.launcher.replicas import check_replicas
from console.launcher.service import Service
from console.launcher.services import Plan, RedisPlan

NOWHERE = RedisPlan(url=None, notice="no Redis")


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(
        home=tmp_path,
        replicas=3,
        with_worker=False,
        namesrv_port=0,
        broker_port=0,
        console_port=0,
    )


def planned(options: Options, ports: Ports, access: Access | None = None) -> dict[str, Service]:
    plan = Plan(options, ports, NOWHERE, access)
    return {each.name: each for each in plan.services(set_up=False)}


def replicated(home: Path) -> None:
    (home / "store").mkdir()
    (home / "store" / "brokerIdentity").write_text("DefaultCluster#broker-a#1")


def test_three_replicas_have_three_controllers(options: Options) -> None:
    ports = choose_ports(options)
    services = planned(options, ports)
    controllers = ["controller-0", "controller-1", "controller-2"]
    assert {"broker", "replica-2", "replica-3", *controllers} <= set(services)
    addrs = ";".join(f"127.0.0.1:{each.port}" for each in ports.controllers)
    for name in ("broker", "replica-2", "replica-3"):
        env = services[name].env
        assert env["ROCKETMQ_ENABLE_CONTROLLER_MODE"] == "true"
        assert env["ROCKETMQ_CONTROLLER_ADDR"] == addrs
        assert set(controllers) <= set(services[name].after)
    brokers = [services[name] for name in ("broker", "replica-2", "replica-3")]
    assert len({each.env["ROCKETMQ_STORE_PATH_ROOT_DIR"] for each in brokers}) == len(brokers)
    assert services["controller-1"].env["ROCKETMQ_CONTROLLER_D_LEGER_SELF_ID"] == "n1"
    for service in services.values():
        for name in service.after:
            assert service.stop_rank < services[name].stop_rank


def test_all_ports_differ(options: Options) -> None:
    ports = choose_ports(options)
    brokers = [ports.broker, *(each.broker for each in ports.replicas)]
    numbers = [
        *(port + distance for port in brokers for distance in (-2, 0, 1)),
        *(each.http for each in ports.replicas),
        *(n for each in ports.controllers for n in (each.port, each.raft, each.http)),
        *(ports.namesrv, ports.namesrv_http, ports.broker_http, ports.console, ports.redis),
    ]
    assert len(set(numbers)) == len(numbers)


def test_at_first_the_broker_with_the_messages_starts_first(options: Options) -> None:
    ports = choose_ports(options)
    assert "broker" in planned(options, ports)["replica-2"].after
    replicated(options.home)
    assert "broker" not in planned(options, ports)["replica-2"].after, "any replica may lead now"


@pytest.mark.parametrize(("replicas", "controllers"), [(1, 0), (2, 1), (3, 3), (5, 3)])
def test_the_number_of_controllers(options: Options, replicas: int, controllers: int) -> None:
    assert replace(options, replicas=replicas).controllers == controllers


def test_every_listener_is_printed(options: Options) -> None:
    ports = choose_ports(options)
    printed = "\n".join(introduction(options, ports, NOWHERE, None))
    for each in ports.replicas:
        assert f"127.0.0.1:{each.broker}," in printed
    for controller in ports.controllers:
        assert f"127.0.0.1:{controller.port}, {controller.raft} (Raft)" in printed


def test_a_replica_does_not_run_alone(options: Options) -> None:
    alone = replace(options, replicas=1)
    check_replicas(alone)
    replicated(options.home)
    check_replicas(options)
    with pytest.raises(StartError, match="--replicas again") as caught:
        check_replicas(alone)
    assert caught.value.exit_code == EXIT_USAGE


def test_replicas_of_a_secured_folder_sign_and_speak_tls(options: Options) -> None:
    (options.home / "conf").mkdir()
    access = open_access(options.home, options.host)
    services = planned(options, choose_ports(options), access)
    for name in ("broker", "replica-2", "replica-3", "controller-0", "controller-2"):
        env = services[name].env
        assert env["ROCKETMQ_AUTHENTICATION_ENABLED"] == "true", name
        assert env["ROCKETMQ_TLS_SERVER_MODE"] == "enforcing", name
        keys = json.loads(env["ROCKETMQ_INNER_CLIENT_AUTHENTICATION_CREDENTIALS"])
        assert keys["secretKey"] == access.credentials.secret_key, name
    for name in ("broker", "replica-2", "replica-3"):
        assert services[name].env["ROCKETMQ_HA_TLS_ENABLE"] == "true", name
        assert services[name].env["ROCKETMQ_HA_TLS_NEED_CLIENT_AUTH"] == "true", name
    assert services["controller-1"].env["ROCKETMQ_RAFT_TLS_NEED_CLIENT_AUTH"] == "true"


@pytest.mark.parametrize("number", ["0", "6", "x"])
def test_a_wrong_number_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--replicas", number], {})
    assert "--replicas" in capsys.readouterr().err
