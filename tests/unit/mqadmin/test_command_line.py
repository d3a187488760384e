"""The command line: help, typing errors, hostile values. No test needs a server."""

from collections.abc import Mapping

import pytest
from click.testing import CliRunner, Result

from core_broker.mqadmin.catalog import CATALOG
from core_broker.mqadmin.cli import cli
from core_broker.mqadmin.command import INT_MAX

NOWHERE = {"NAMESRV_ADDR": "127.0.0.1:1", "ROCKETMQ_HOME": None, "MQADMIN_TOOLS_FILE": None}


def run(*arguments: str, env: Mapping[str, str | None] = NOWHERE) -> Result:
    result = CliRunner().invoke(cli, arguments, prog_name="mqadmin", env=env)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    return result


@pytest.mark.parametrize("arguments", [(), ("-h",), ("--help",), ("help",)])
def test_the_list_of_commands(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 0
    assert "mqadmin help <command>" in result.stdout
    assert "resetOffsetByTime" in result.stdout


@pytest.mark.parametrize("name", CATALOG)
def test_help_of_a_command(name: str) -> None:
    for arguments in ((name, "-h"), (name, "--help"), ("help", name)):
        result = run(*arguments)
        assert result.exit_code == 0, result.stderr
        assert f"Usage: mqadmin {name} " in result.stdout
        assert "--namesrvAddr" in result.stdout


def test_an_unknown_command() -> None:
    result = run("topicLst")
    assert result.exit_code == 2
    assert "The sub command topicLst not exist. Did you mean topicList?" in result.stderr
    assert run("help", "addBroker").exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("topicStatus",),
        ("topicStatus", "-t", "  "),
        ("topicStatus", "-t"),
        ("topicStatus", "-t", "T", "-x"),
        ("topicList", "extra"),
        ("updateTopic", "-t", "T"),
        ("updateTopic", "-t", "T", "-b", "h:1", "-c", "C"),
        ("updateTopic", "-t", "T", "-b", "h:1", "-r", "-1"),
        ("updateTopic", "-t", "T", "-b", "h:1", "-r", str(INT_MAX + 1)),
        ("updateTopic", "-t", "T", "-b", "h:1", "-r", "1" * 400),
        ("updateTopic", "-t", "T", "-b", "h:1", "-r", "eight"),
        ("updateTopic", "-t", "T", "-b", "h:1", "-r", "1_0"),
        ("updateTopic", "-t", "T", "-b", "h:1", "-r", "\u0663"),
        ("updateTopic", "-t", "T", "-b", "h:1", "-p", "8"),
        ("updateTopic", "-t", "T", "-b", "h:1", "-o", "yes"),
        ("updateTopic", "-t", "no blanks", "-b", "127.0.0.1:1"),
        ("updateTopic", "-t", "T" * 128, "-b", "127.0.0.1:1"),
        ("updateTopic", "-t", "../T", "-b", "127.0.0.1:1"),
        ("updateSubGroup", "-g", "no blanks", "-b", "127.0.0.1:1"),
        ("deleteTopic", "-t", "T"),
        ("resetOffsetByTime", "-g", "G", "-t", "T", "-s", "yesterday"),
        ("resetOffsetByTime", "-g", "G", "-t", "T", "-s", "-2"),
        ("resetOffsetByTime", "-g", "G", "-t", "T", "-s", "2026-13-01#00:00:00:000"),
        ("printMsg", "-t", "T", "-c", "no charset"),
        ("printMsg", "-t", "T", "-b", "now"),
        ("queryMsgById", "-i", "short"),
        ("queryMsgById", "-i", "Z" * 32),
        ("queryMsgByOffset", "-t", "T", "-b", "b", "-i", "-1", "-o", "0"),
        ("queryCq", "-t", "T", "-q", "0", "-i", "0", "-c", "1000000"),
        ("checkMsgSendRT", "-t", "T", "-a", "0"),
        ("checkMsgSendRT", "-t", "T", "-s", "99999999999"),
        ("sendMessage", "-t", "T", "-p", "b", "-i", "0"),
        ("consumeMessage", "-t", "T", "-i", "0"),
        ("consumeMessage", "-t", "T", "-b", "b", "-o", "0"),
        ("consumeMessage", "-t", "T", "-c", "0"),
        ("consumeMessage", "-t", "T", "-s", "999999999999999"),
        ("consumeMessage", "-t", "T", "-s", "2", "-e", "1"),
        ("DecodeMessageId", "-i", "xyz"),
        ("brokerStatus",),
        ("exportMetadata",),
        ("updateOrderConf", "-t", "T", "-m", "replace"),
        ("updateOrderConf", "-t", "T", "-m", "put"),
        ("getBrokerConfig", "-b", "no port"),
        ("topicList", "-n", "no port"),
        ("topicList", "-n", "host:99999"),
        ("topicList", "--output", "xml"),
        ("topicList", "--requestTimeoutMillis", "0"),
        ("topicList", "--accessKey", "only-this"),
    ],
)
def test_usage_errors_end_with_code_2_and_a_sentence(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, (result.stdout, result.stderr)
    assert result.stderr.strip()


@pytest.mark.parametrize("name", ["topicList", "clusterList", "consumerProgress", "statsAll"])
def test_a_dead_name_server_ends_with_code_3(name: str) -> None:
    result = run(name)
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert "Cannot connect to 127.0.0.1:1" in result.stderr
    assert "NAMESRV_ADDR" in result.stderr


def test_without_a_name_server_the_variable_is_named() -> None:
    nothing = {**NOWHERE, "NAMESRV_ADDR": None}
    for arguments in (["topicList"], ["getNamesrvConfig"], ["sendMessage", "-t", "T", "-p", "b"]):
        result = run(*arguments, env=nothing)
        assert result.exit_code == 2
        assert "NAMESRV_ADDR" in result.stderr
    key = "C0000202268C5DF2B1866A0A30610001"
    assert run("DecodeMessageId", "-i", key, env=nothing).exit_code == 0
    assert run("brokerStatus", "-b", "127.0.0.1:1", env=nothing).exit_code == 3


@pytest.mark.parametrize(
    "option", [("-i", "x"), ("-ix",), ("--messageId", "x"), ("--messageId=x",), ("-messageId", "x")]
)
def test_options_may_be_written_as_in_java(option: tuple[str, ...]) -> None:
    result = run("DecodeMessageId", *option)
    assert "'x' is no message id" in result.stderr


def test_decoding_an_id_needs_no_server() -> None:
    key = "C0000202268C5DF2B1866A0A30610001"
    result = run("decodemessageid", "-i", f" {key} ")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0] == "ip=192.0.2.2"
    assert run("DecodeMessageId", "-i", key, "--output", "json").stdout.startswith('{"ip":"192.0')


def test_the_shell_completes_names_and_options() -> None:
    def complete(words: str) -> list[str]:
        env = {
            **NOWHERE,
            "_MQADMIN_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        lines = run(env=env).stdout.splitlines()
        return [line.partition(",")[2] for line in lines]

    assert complete("mqadmin topicst") == ["topicStatus"]
    assert "--topic" in complete("mqadmin topicStatus --t")


def test_update_topic_warns_of_queues_that_no_consumer_reads() -> None:
    result = run("updateTopic", "-b", "127.0.0.1:1", "-t", "T", "-r", "4", "-w", "8")
    assert "no consumer reads queues 4 to 7" in result.stderr
    even = run("updateTopic", "-b", "127.0.0.1:1", "-t", "T", "-r", "8", "-w", "8")
    assert "no consumer reads" not in even.stderr
