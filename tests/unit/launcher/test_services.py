"""The planned programs: commands, environment and order."""

from dataclasses import replace
from pathlib import Path

import pytest

from console.launcher.access import open_access
from console.launcher.child import environment
from console.launcher.options import Options
from console.launcher.ports import Ports
from console.launcher.service import Service
from console.launcher.services import Plan, RedisPlan

PORTS = Ports(
    namesrv=9876, namesrv_http=5558, broker=10911, broker_http=5559, console=8082, redis=6380
)
EMBEDDED = RedisPlan(url="redis://:pw@127.0.0.1:6380/0", server=Path("/bin/true"), password="pw")
ELSEWHERE = RedisPlan(url="redis://elsewhere:6379/0")
NOWHERE = RedisPlan(url=None, notice="no Redis")


@pytest.fixture
def options(tmp_path: Path) -> Options:
    (tmp_path / "run").mkdir()
    return Options(home=tmp_path)


def planned(options: Options, redis: RedisPlan, *, set_up: bool = False) -> dict[str, Service]:
    return {each.name: each for each in Plan(options, PORTS, redis).services(set_up=set_up)}


def test_everything_runs_with_the_embedded_server(options: Options) -> None:
    services = planned(options, EMBEDDED, set_up=True)
    assert set(services) == {
        *("namesrv", "broker", "valkey", "setup", "console", "worker", "scheduler"),
    }
    assert services["broker"].after == ("namesrv",)
    assert services["console"].after == ("setup",)
    assert set(services["worker"].after) == {"valkey", "setup"}


def test_a_redis_elsewhere_replaces_the_embedded_one(options: Options) -> None:
    services = planned(options, ELSEWHERE)
    assert set(services) == {"namesrv", "broker", "console", "worker", "scheduler"}
    assert services["console"].env["REDIS_URL"] == ELSEWHERE.url
    assert services["worker"].after == ()


def test_without_redis_the_console_runs_and_jobs_do_not(options: Options) -> None:
    services = planned(options, NOWHERE)
    assert set(services) == {"namesrv", "broker", "console"}
    assert services["console"].env["REDIS_URL"] == ""


def test_no_worker_and_demo_are_as_asked(options: Options) -> None:
    services = planned(replace(options, with_worker=False, with_demo=True), EMBEDDED)
    assert set(services) == {"namesrv", "broker", "valkey", "console", "demo"}
    assert services["demo"].after == ("broker",)


@pytest.mark.parametrize("redis", [EMBEDDED, ELSEWHERE, NOWHERE])
@pytest.mark.parametrize("set_up", [True, False])
def test_programs_wait_only_for_those_planned_and_stop_before_them(
    options: Options, redis: RedisPlan, set_up: bool
) -> None:
    services = planned(replace(options, with_demo=True), redis, set_up=set_up)
    for service in services.values():
        for name in service.after:
            assert services[name].once or service.stop_rank < services[name].stop_rank


def test_the_admins_password_reaches_the_set_up_step_alone(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANTRY_ADMIN_PASSWORD", "s3cret")
    services = planned(replace(options, with_demo=True), EMBEDDED, set_up=True)
    told = {name for name, each in services.items() if "s3cret" in environment(each).values()}
    assert told == {"setup"}
    assert services["setup"].env["GANTRY_ADMIN_PASSWORD"] == "s3cret"
    assert services["console"].env["GANTRY_ADMIN_PASSWORD"] == ""
    assert services["setup"].private_output


def test_an_open_host_is_reached_over_loopback_and_announced_by_the_broker(
    options: Options,
) -> None:
    near = planned(options, NOWHERE)["broker"]
    assert near.env["ROCKETMQ_BROKER_IP1"] == "127.0.0.1"
    far = planned(replace(options, host="0.0.0.0"), NOWHERE)["broker"]
    assert "ROCKETMQ_BROKER_IP1" not in far.env
    assert far.command[-2:] == ("-n", "127.0.0.1:9876")


def test_an_ipv6_address_gets_its_brackets(options: Options) -> None:
    services = planned(replace(options, host="::1"), NOWHERE)
    assert services["broker"].command[-1] == "[::1]:9876"
    assert services["console"].env["NAMESRV_ADDR"] == "[::1]:9876"
    assert "::1" in services["console"].command


def test_the_keys_of_a_secured_folder_reach_every_program(options: Options) -> None:
    (options.home / "conf").mkdir()
    access = open_access(options.home, options.host)
    plan = Plan(replace(options, with_demo=True), PORTS, EMBEDDED, access)
    services = {each.name: each for each in plan.services(set_up=True)}
    secret = access.credentials.secret_key
    told = {name for name, each in services.items() if secret in " ".join(each.env.values())}
    assert told == {"namesrv", "broker"}
    for name in ("namesrv", "broker"):
        assert services[name].env["ROCKETMQ_TLS_SERVER_MODE"] == "enforcing"
    for name in ("setup", "console", "worker", "scheduler"):
        env = services[name].env
        assert env["CONSOLE_CLUSTER_CREDENTIALS"] == f"local={access.tools_file}"
        assert env["CONSOLE_CLUSTER_TLS"] == f"local={access.client_tls_file}"
    assert services["demo"].command[-1] == str(access.tools_file)
    assert services["demo"].env["ROCKETMQ_TLS_CONFIG_FILE"] == str(access.client_tls_file)
