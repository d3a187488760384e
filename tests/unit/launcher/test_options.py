from pathlib import Path

import pytest

from console.environment import read_environment
from console.launcher.options import parse_options

ROOT = Path(__file__).resolve().parents[3]


def test_defaults_are_rocketmqs_ports_on_this_machine_only() -> None:
    options = parse_options([], {})
    assert (options.namesrv_port, options.broker_port, options.console_port) == (9876, 10911, 8082)
    assert options.host == "127.0.0.1"
    assert options.home == ROOT / "var"
    assert options.with_worker
    assert not options.with_demo


def test_the_default_home_does_not_depend_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_options([], {}).home == ROOT / "var"
    assert read_environment({"SECRET_KEY": "given"}).home == ROOT / "var"
    assert parse_options([], {"GANTRY_HOME": "mine"}).home == tmp_path / "mine"


def test_environment_gives_defaults_and_options_win() -> None:
    environ = {"GANTRY_HOME": "/srv/gantry", "PORT": "9000"}
    assert parse_options([], environ).home == Path("/srv/gantry")
    assert parse_options([], environ).console_port == 9000
    assert parse_options(["--home", "/x", "--console-port", "0"], environ).home == Path("/x")
    assert parse_options(["--console-port", "0"], environ).console_port == 0


@pytest.mark.parametrize("text", ["-1", "65536", "x", "", "\uff11\uff10", "9" * 5000])
def test_a_bad_port_is_a_usage_error_that_names_the_option(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_options([f"--broker-port={text}"], {})
    assert caught.value.code == 2
    assert "--broker-port: expected a port" in capsys.readouterr().err


def test_a_bad_port_in_the_environment_is_a_usage_error_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parse_options([], {"PORT": "http"})
    assert "got 'http'" in capsys.readouterr().err


def test_a_host_name_becomes_an_address() -> None:
    assert parse_options(["--host", "localhost"], {}).host in ("127.0.0.1", "::1")


@pytest.mark.parametrize("host", ["no such host", "x" * 300, "a..b", "\0"])
def test_an_unknown_host_is_a_usage_error(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options([f"--host={host}"], {})
    assert "--host: no address for" in capsys.readouterr().err


def test_a_secured_cluster_is_asked_for_or_refused() -> None:
    assert parse_options([], {}).secure is None
    assert parse_options(["--secure"], {}).secure is True
    assert parse_options(["--no-secure"], {}).secure is False
