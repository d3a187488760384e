"""The program: its output for people and for programs, and its exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core_broker.mqstore.cli import main
from tests.support.stores import Bench, message

OPTIONS = ("--max-hash-slot-num", "64", "--max-index-num", "50")
Capture = pytest.CaptureFixture[str]


def run(*arguments: str) -> int:
    """Run a command on a store with the sizes of the tests."""
    return main([*arguments, *OPTIONS])


def ask(capsys: Capture, *arguments: str) -> Any:
    """Run a command and return its JSON."""
    run(*arguments, "--output", "json")
    return json.loads(capsys.readouterr().out)


def test_ls(root: Path, capsys: Capture) -> None:
    assert run("ls", str(root)) == 0
    printed = capsys.readouterr().out
    assert "commitlog/00000000000000016384" in printed
    assert "SCHEDULE_TOPIC_XXXX" in printed
    listing = ask(capsys, "ls", str(root))
    assert (listing["minOffset"], listing["maxOffset"]) == (0, 18947)
    queues = {(each["topic"], each["queueId"]): each for each in listing["queues"]}
    assert (queues["TopicTest", 0]["minOffset"], queues["TopicTest", 0]["maxOffset"]) == (0, 40)
    assert queues["TopicTest", 0]["files"] == 2
    assert [each["items"] for each in listing["index"]] == [49, 49, 49, 3]
    assert listing["checkpoint"]["physicMsgTimestamp"] == 1_700_000_000_000
    assert listing["odd"] == {}
    assert not listing["isInUse"]


def test_exit_codes_of_verify(root: Path, capsys: Capture) -> None:
    assert run("verify", str(root)) == 0
    assert "clean" in capsys.readouterr().out
    path = root / "consumequeue/Plain/0/00000000000000000000"
    path.write_bytes(bytes(400))
    assert run("verify", str(root)) == 1
    printed = capsys.readouterr().out
    assert "consumequeue/Plain/0/00000000000000000000" in printed
    assert "1 problems" in printed
    verdict = ask(capsys, "verify", str(root))
    assert not verdict["isClean"]
    assert verdict["problemCount"] == 1
    assert verdict["problems"][0]["offset"] == 0


def test_dump_a_range_a_topic_and_a_body(root: Path, capsys: Capture) -> None:
    first, second = ask(capsys, "dump", str(root), "--count", "2")
    assert (first["offset"], first["body"], second["body"]) == (0, "message 0", "message 1")
    assert second["offset"] == first["size"]
    assert first["properties"]["KEYS"] == "order-0 customer-0"
    (only,) = ask(capsys, "dump", str(root), "--topic", "Other", "--count", "1", "--body", "hex")
    assert only["body"] == (b"x" * 256).hex()
    assert only["bodySize"] == 900
    offset = str(second["offset"])
    again, *_ = ask(capsys, "dump", str(root), "--offset", offset)
    assert again == second


def test_dump_by_key_and_by_ids(root: Path, capsys: Capture) -> None:
    (found,) = ask(capsys, "dump", str(root), "--topic", "TopicTest", "--key", "order-7")
    assert found["body"] == "message 7"
    (same,) = ask(capsys, "dump", str(root), "--id", found["offsetMsgId"])
    assert same == found
    (same,) = ask(capsys, "dump", str(root), "--topic", "TopicTest", "--id", found["msgId"])
    assert same == found
    assert run("dump", str(root), "--id", "0" * 32) == 1
    assert "a unique key needs --topic" in capsys.readouterr().err


def test_dump_units_and_chains(root: Path, capsys: Capture) -> None:
    place = ("--topic", "TopicTest", "--queue", "0")
    units = ask(capsys, "dump", str(root), "--units", *place, "--offset", "18", "--count", "4")
    assert [each["queueOffset"] for each in units] == [18, 19, 20, 21]
    assert units[2]["file"] == "consumequeue/TopicTest/0/00000000000000000400"
    chain = ask(capsys, "dump", str(root), "--chain", "--topic", "TopicTest", "--key", "customer-1")
    matches = [each["offset"] for each in chain if each["isMatch"]]
    assert len(matches) == 6
    assert matches == sorted(matches, reverse=True)
    for command in (("--units", *place), ("--chain", "--topic", "TopicTest", "--key", "order-1")):
        assert run("dump", str(root), *command) == 0
        assert "offset" in capsys.readouterr().out
    assert run("dump", str(root), "--units", "--topic", "None", "--queue", "0") == 1


def test_dump_for_people_makes_control_characters_visible(tmp_path: Path, capsys: Capture) -> None:
    bench = Bench(tmp_path).open()
    bench.put(message(body=b"\x1b[2Jgone [bold]\n", properties={"A": "\x1b]0;title\x07"}))
    bench.store.close()
    assert run("dump", str(tmp_path)) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert r"\x1b[2Jgone [bold]\n" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nothing", "."),
        ("dump", ".", "--units"),
        ("dump", ".", "--key", "k"),
        ("dump", ".", "--chain", "--topic", "T"),
        ("dump", ".", "--id", "0" * 32, "--units", "--topic", "T", "--queue", "0"),
        ("dump", ".", "--count", "0"),
        ("dump", ".", "--body-bytes", "9999999999"),
        ("verify", ".", "--limit", "-1"),
    ],
)
def test_misuse(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2


def test_a_folder_without_a_store(tmp_path: Path, capsys: Capture) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        assert main(["verify", str(folder)]) == 2
        assert "is no store folder" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["0", "-5", "x", "9" * 30, "1e3"])
def test_invalid_sizes(root: Path, capsys: Capture, value: str) -> None:
    assert main(["ls", str(root), f"--mapped-file-size-commit-log={value}"]) == 2
    assert "mappedFileSizeCommitLog" in capsys.readouterr().err


def test_settings_come_from_a_broker_conf(root: Path, tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "elsewhere"
    (root / "commitlog").rename(log)
    conf = tmp_path / "broker.conf"
    conf.write_text(
        f"mappedFileSizeCommitLog=16384\nmappedFileSizeConsumeQueue=400\nmaxHashSlotNum=64\n"
        f"maxIndexNum=50\nstorePathCommitLog={log}\nbrokerRole=SLAVE\nunknown=1\n"
    )
    assert main(["verify", str(root), "-c", str(conf)]) == 0
    assert main(["verify", str(root), "-c", str(tmp_path / "none.conf")]) == 2
    assert run("verify", str(root), "--store-path-commit-log", str(log)) == 0
    capsys.readouterr()


def test_a_closed_output_pipe_is_no_failure(root: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "core_broker.mqstore", "dump", str(root), *OPTIONS]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False, timeout=180)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_undecodable_names_are_escaped(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for folder in ("consumequeue", "config"):
        (root / folder).mkdir(exist_ok=True)
    (root / "consumequeue" / "x\udcff" / "0").mkdir(parents=True)
    (root / "config" / "y\udcff").write_bytes(b"")
    odd = root.rename(root.with_name("z\udcff"))
    for command in ("ls", "verify", "repair"):
        for output in ("json", "table"):
            assert run(command, str(odd), "--output", output) == 0
            assert "udcff" in capfd.readouterr().out or (command, output) == ("verify", "table")
    assert main(["verify", str(odd / "none")]) == 2
    assert "udcff" in capfd.readouterr().err
