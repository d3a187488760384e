"""Loading of settings: order of the sources, all problems at once, hints, print-outs."""

from pathlib import Path

import pytest

from core_broker.config.loading import load_broker_config, load_namesrv_config
from core_broker.errors import SettingsError


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return tmp_path / "broker.conf"


def test_defaults_file_environment_and_options_in_this_order(conf: Path) -> None:
    conf.write_text("listenPort=1\nhttpPort=2\nnamesrvAddr=file:1\nbrokerName=from-file\n")
    environ = {"ROCKETMQ_HTTP_PORT": "3", "NAMESRV_ADDR": "default:1"}
    loaded = load_broker_config(["-c", str(conf), "-n", "option:1"], environ)
    assert loaded.config.listen_port == 1
    assert loaded.config.http_port == 3
    assert loaded.config.namesrv_addr == "option:1"
    assert loaded.config.broker_name == "from-file"
    assert loaded.sources == {
        "listenPort": f"{conf}:1",
        "httpPort": "environment ROCKETMQ_HTTP_PORT",
        "namesrvAddr": "option -n",
        "brokerName": f"{conf}:4",
    }
    assert loaded.warnings == ()


def test_namesrv_addr_variable_is_only_a_default(conf: Path) -> None:
    environ = {"NAMESRV_ADDR": "variable:1"}
    assert load_broker_config([], environ).config.namesrv_addr == "variable:1"
    conf.write_text("namesrvAddr=file:1\n")
    assert load_broker_config(["-c", str(conf)], environ).config.namesrv_addr == "file:1"


@pytest.mark.parametrize(
    "variable", ["ROCKETMQ_LISTENPORT", "ROCKETMQ_LISTEN_PORT", "ROCKETMQ_listenPort"]
)
def test_variables_may_be_spelled_with_or_without_underscores(variable: str) -> None:
    assert load_broker_config([], {variable: "7"}).config.listen_port == 7


def test_every_problem_is_reported_at_once_with_its_place(conf: Path) -> None:
    conf.write_text(
        "listenPort=abc\nflushDiskType=SYNC\n\nmaxMessageSize=-1\nnamesrvAddr=nowhere\n"
        "longPollingEnable=yes\n"
    )
    with pytest.raises(SettingsError) as raised:
        load_broker_config(["-c", str(conf)], {"ROCKETMQ_HTTP_PORT": "99999"})
    lines = str(raised.value).splitlines()
    assert lines == [
        f"{conf}:1: listenPort = 'abc': expected a whole number from 0 to 65535",
        f"{conf}:2: flushDiskType = 'SYNC': expected one of ASYNC_FLUSH, SYNC_FLUSH",
        f"{conf}:4: maxMessageSize = '-1': expected a whole number from 1 to 2147483647",
        f"{conf}:5: namesrvAddr = 'nowhere': expected host:port, several separated by ;",
        f"{conf}:6: longPollingEnable = 'yes': expected true or false",
        "environment ROCKETMQ_HTTP_PORT: httpPort = '99999':"
        " expected a whole number from -1 to 65535",
    ]


@pytest.mark.parametrize(
    "hours", ["99", "24", "-1", "04;99", "04;;16", "4.5", "004", "four", "٤", ";"]
)
def test_impossible_hours_of_deletion_are_refused_with_the_allowed_ones(
    conf: Path, hours: str
) -> None:
    conf.write_text(f"listenPort=1\ndeleteWhen={hours}\n", encoding="utf-8")
    with pytest.raises(SettingsError) as raised:
        load_broker_config(["-c", str(conf)], {})
    assert str(raised.value) == (
        f"{conf}:2: deleteWhen = {hours!r}: expected hours from 00 to 23, several separated by ;"
        " (empty: no hour)"
    )


@pytest.mark.parametrize("hours", ["", "04", "4", "00;23", "04; 16", "04;16;"])
def test_lists_of_hours_are_accepted(conf: Path, hours: str) -> None:
    conf.write_text(f"deleteWhen={hours}\n")
    assert load_broker_config(["-c", str(conf)], {}).config.delete_when == hours


def test_a_missing_file_is_a_problem_not_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.conf.*readable settings file"):
        load_broker_config(["-c", str(tmp_path / "none.conf")], {})


def test_a_file_that_is_not_text_is_a_problem_too(conf: Path) -> None:
    conf.write_bytes(b"listenPort=\xff\xfe")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load_broker_config(["-c", str(conf)], {})


def test_unknown_keys_warn_with_the_nearest_one(conf: Path) -> None:
    conf.write_text("brokrName=x\nsendMessageThreadPoolNums=4\nzzzzqq=1\n")
    environ = {"ROCKETMQ_LISTN_PORT": "1", "ROCKETMQ_SERIALIZE_TYPE": "ROCKETMQ"}
    loaded = load_broker_config(["-c", str(conf)], environ)
    assert loaded.warnings == (
        f"{conf}:1: brokrName is not a known key and is ignored; did you mean brokerName?",
        f"{conf}:3: zzzzqq is not a known key and is ignored",
        f"{conf}: without effect here (-p tells why): sendMessageThreadPoolNums",
        "environment: ROCKETMQ_LISTN_PORT is not a known key and is ignored;"
        " did you mean listenPort?",
    )


def test_options_of_the_java_vm_are_warned_about() -> None:
    warnings = load_broker_config([], {"JAVA_OPT_EXT": "-Xmx1g"}).warnings
    assert warnings == ("environment: JAVA_OPT_EXT has no effect here",)


@pytest.mark.parametrize(
    "address", ["ns:9876", "10.0.0.1:9876;ns-2:9876", "[::1]:9876", "ns:1;", "a.b-c.d:65535"]
)
def test_addresses_of_name_servers(address: str) -> None:
    assert load_broker_config(["-n", address], {}).config.namesrv_addr == address


@pytest.mark.parametrize("address", ["ns", "ns:0", "ns:65536", "::1:9876", "a:1,b:1", "http://a:1"])
def test_other_texts_are_refused_as_addresses(address: str) -> None:
    with pytest.raises(SettingsError, match="host:port"):
        load_broker_config(["-n", address], {})


def test_a_variable_of_the_other_process_is_no_mistake() -> None:
    assert load_namesrv_config([], {"ROCKETMQ_BROKER_NAME": "b"}).warnings == ()


@pytest.mark.parametrize(
    "line",
    [
        "enableLmq=true",
        "enableLmq=TRUE",
        "enableMultiDispatch=true",
    ],
)
def test_values_that_are_dangerous_to_ignore_are_refused(conf: Path, line: str) -> None:
    conf.write_text(line + "\n")
    with pytest.raises(SettingsError, match="not available in this version"):
        load_broker_config(["-c", str(conf)], {})


def test_a_slave_has_an_id_above_zero(conf: Path) -> None:
    conf.write_text("brokerRole=SLAVE\nbrokerId=3\n")
    loaded = load_broker_config(["-c", str(conf)], {})
    assert (loaded.config.broker_id, loaded.warnings) == (3, ())


@pytest.mark.parametrize("line", ["", "brokerId=0\n"])
def test_a_slave_without_id_is_refused(conf: Path, line: str) -> None:
    conf.write_text("brokerRole=SLAVE\n" + line)
    with pytest.raises(SettingsError, match=r"brokerId.*above 0 with brokerRole=SLAVE"):
        load_broker_config(["-c", str(conf)], {})


@pytest.mark.parametrize("address", ["master", "host:70000", ":10912"])
def test_an_ha_address_of_a_master_is_checked(conf: Path, address: str) -> None:
    conf.write_text(f"haMasterAddress={address}\n")
    with pytest.raises(SettingsError, match=r"haMasterAddress.*host:port"):
        load_broker_config(["-c", str(conf)], {})


def test_a_master_has_the_id_zero(conf: Path) -> None:
    conf.write_text("brokerId=3\n")
    loaded = load_broker_config(["-c", str(conf)], {})
    assert loaded.config.broker_id == 0
    assert "brokerId=3 is ignored" in loaded.warnings[0]


def test_listings() -> None:
    everything = load_broker_config(["-p"], {}).listing
    assert everything is not None
    assert "flushIntervalCommitLog=500\n" in everything
    important = load_broker_config(["-m"], {}).listing
    assert important is not None
    assert "brokerClusterName=DefaultCluster\n" in important
    assert "flushIntervalCommitLog" not in important
    checked = load_broker_config(["--check", "-n", "h:1"], {}).listing
    assert checked == "namesrvAddr=h:1  (option -n)\nThe settings are in order.\n"
    assert load_broker_config([], {}).listing is None


def test_help_and_wrong_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        load_namesrv_config(["-h"], {})
    assert left.value.code == 0
    assert "--configFile" in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        load_namesrv_config(["--nope"], {})
    assert left.value.code == 2


@pytest.mark.parametrize("options", [["-p", "-m"], ["-p", "--check"], ["-m", "--check"]])
def test_print_outs_exclude_each_other(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        load_broker_config(options, {})
    assert left.value.code == 2
    assert "exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--namesrvAddr", "h:1", "--configFile", "FILE"],
        ["--namesrvAddr=h:1", "--configFile=FILE"],
        ["-nh:1", "-cFILE"],
    ],
)
def test_options_have_rocketmqs_long_names(conf: Path, options: list[str]) -> None:
    conf.write_text("listenPort=7\n")
    argv = [option.replace("FILE", str(conf)) for option in options]
    loaded = load_broker_config(argv, {})
    assert (loaded.config.listen_port, loaded.config.namesrv_addr) == (7, "h:1")


def test_the_name_server_takes_n_and_keeps_its_updates_in_the_given_file(conf: Path) -> None:
    conf.write_text("listenPort=0\n")
    loaded = load_namesrv_config(["-c", str(conf), "-n", "h:1"], {"NAMESRV_ADDR": "h:2"})
    assert loaded.config.config_store_path == str(conf)
    conf.write_text("configStorePath=/elsewhere\n")
    assert load_namesrv_config(["-c", str(conf)], {}).config.config_store_path == "/elsewhere"
