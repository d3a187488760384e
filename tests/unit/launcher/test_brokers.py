"""`up --brokers`: further brokers, their names, ports, stores and settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from console.launcher import ports as port_choice
from console.launcher.brokers import broker_folder, count_brokers, further_names
from console.launcher.errors import EXIT_USAGE, StartError
from console.launcher.main import introduction
from console.launcher.options import BROKERS_MAX, Options, parse_options
from console.launcher.ports import choose_ports
from console.launcher.service import Service
from console.launcher.services import Plan, RedisPlan

NOWHERE = RedisPlan(url=None, notice="no Redis")


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(
        home=tmp_path,
        brokers=3,
        with_worker=False,
        namesrv_port=0,
        broker_port=0,
        console_port=0,
    )


def planned(options: Options) -> dict[str, Service]:
    plan = Plan(options, choose_ports(options, options.brokers or 1), NOWHERE)
    return {each.name: each for each in plan.services(set_up=False)}


def started_with(home: Path, brokers: int) -> None:
    for name in further_names(brokers):
        broker_folder(home, name).mkdir(parents=True)


def test_brokers_share_name_server_and_settings_and_nothing_else(options: Options) -> None:
    services = planned(replace(options, with_demo=True))
    brokers = [services[name] for name in ("broker", "broker-b", "broker-c")]
    assert len({each.command for each in brokers}) == 1, "settings file and name server"
    for key in ("STORE_PATH_ROOT_DIR", "LISTEN_PORT", "HTTP_PORT"):
        assert len({each.env[f"ROCKETMQ_{key}"] for each in brokers}) == len(brokers), key
    names = [each.env.get("ROCKETMQ_BROKER_NAME") for each in brokers]
    assert names == [None, "broker-b", "broker-c"]
    assert {each.after for each in brokers} == {("namesrv",)}
    assert services["demo"].after == ("broker", "broker-b", "broker-c")
    for each in brokers:
        assert services["demo"].stop_rank < each.stop_rank < services["namesrv"].stop_rank


def test_all_ports_differ(options: Options) -> None:
    ports = choose_ports(options, 3)
    brokers = [ports.broker, *(each.broker for each in ports.brokers)]
    numbers = [
        *(port + distance for port in brokers for distance in (-2, 0, 1)),
        *(each.http for each in ports.brokers),
        *(ports.namesrv, ports.namesrv_http, ports.broker_http, ports.console, ports.redis),
    ]
    assert len(set(numbers)) == len(numbers)


def test_further_brokers_have_ports_ten_apart(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_choice, "is_free", lambda host, port: True)
    monkeypatch.setattr(port_choice, "require_free", lambda *_, **__: None)
    ports = choose_ports(replace(options, broker_port=10911), 3)
    assert [(each.broker, each.http) for each in ports.brokers] == [(10921, 5569), (10931, 5579)]
    with pytest.raises(StartError, match=r"65540 of broker 2 .*--broker-port"):
        choose_ports(replace(options, broker_port=65530), 2)


def test_every_listener_is_printed(options: Options) -> None:
    ports = choose_ports(options, 3)
    printed = "\n".join(introduction(options, ports, NOWHERE, None))
    for name, each in zip(("broker-b", "broker-c"), ports.brokers, strict=True):
        assert f"  {name}     127.0.0.1:{each.broker} and {each.broker - 2} (VIP)" in printed


def test_a_later_start_has_the_brokers_of_an_earlier_start(options: Options) -> None:
    unsaid = replace(options, brokers=None)
    assert count_brokers(unsaid, {}) == 1
    assert count_brokers(options, {}) == 3
    started_with(options.home, 3)
    assert count_brokers(unsaid, {}) == 3
    assert count_brokers(replace(options, brokers=5), {}) == 5
    with pytest.raises(StartError, match="brokers/broker-c has messages") as caught:
        count_brokers(replace(options, brokers=2), {})
    assert caught.value.exit_code == EXIT_USAGE


def test_two_brokers_never_have_one_name(options: Options) -> None:
    (options.home / "conf").mkdir()
    conf = options.home / "conf" / "broker.conf"
    conf.write_text("brokerName=broker-a\nbrokerName = broker-c\n")
    with pytest.raises(StartError, match=r"broker is named broker-c .*broker\.conf"):
        count_brokers(options, {})
    assert count_brokers(replace(options, brokers=2), {}) == 2
    assert count_brokers(options, {"ROCKETMQ_BROKER_NAME": "broker-x"}) == 3
    with pytest.raises(StartError, match="broker is named broker-b"):
        count_brokers(replace(options, brokers=2), {"ROCKETMQ_BROKER_NAME": "broker-b"})


@pytest.mark.parametrize("more", [{"brokers": 2}, {"brokers": 1, "replicas": 3}])
def test_brokers_never_write_the_same_files(options: Options, more: dict[str, int]) -> None:
    several = replace(options, **more)
    (options.home / "conf").mkdir()
    conf = options.home / "conf" / "broker.conf"
    conf.write_text("storePathRootDir=/store\nstorePathCommitLog=\n")
    environ = {"ROCKETMQ_STORE_PATH_ROOT_DIR": "/store", "STORE_PATH": "/elsewhere"}
    assert count_brokers(several, environ) == several.brokers
    with pytest.raises(StartError, match="ROCKETMQ_ACCESS_LOG_PATH in the environment"):
        count_brokers(several, {"ROCKETMQ_ACCESS_LOG_PATH": "/access.log"})
    conf.write_text("storePathCommitLog = /log\n")
    with pytest.raises(StartError, match=r"storePathCommitLog in .*broker\.conf") as caught:
        count_brokers(several, {})
    assert caught.value.exit_code == EXIT_USAGE
    assert count_brokers(replace(options, brokers=1), {}) == 1


def test_replicas_of_several_brokers_are_refused(options: Options) -> None:
    with pytest.raises(StartError, match="--replicas copies one broker"):
        count_brokers(replace(options, replicas=3), {})


def test_each_letter_is_a_broker() -> None:
    names = further_names(BROKERS_MAX)
    assert (names[0], names[-1], len(names)) == ("broker-b", "broker-z", BROKERS_MAX - 1)
    assert parse_options(["--brokers", "26"], {}).brokers == BROKERS_MAX
    assert parse_options([], {}).brokers is None


@pytest.mark.parametrize("number", ["0", "27", "x"])
def test_a_wrong_number_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--brokers", number], {})
    assert "--brokers" in capsys.readouterr().err
