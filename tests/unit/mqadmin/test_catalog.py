"""Names and options of all commands, against those of RocketMQ 4.9.8 and 5.3.3."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from core_broker.mqadmin.catalog import CATALOG, find_name
from core_broker.mqadmin.cli import load

DECLARED = [Path(__file__).with_name(f"options-{version}.txt") for version in ("4.9.8", "5.3.3")]

#: Options required here only: RocketMQ declares the option optional, but fails without a value.
STRICTER = {("DecodeMessageId", "-i"), ("getUser", "-u"), ("getAcl", "-s")} | {
    ("resetMasterFlushOffset", option) for option in ("-b", "-o")
}
#: Options required by RocketMQ only: the command asks for the value, or reads a file.
OPTIONAL = {("createUser", "-p")}


#: Commands of Gantry alone.
OWN = {"checkAccess", "drainBroker", "kickClient", "exportDefinitions", "apply"}


class Option(NamedTuple):
    short: str
    long: str
    takes_value: bool
    required: bool


def declared() -> dict[str, list[Option]]:
    commands = {}
    for line in "".join(path.read_text() for path in DECLARED).splitlines():
        if line.startswith("#"):
            continue
        name, *parts = line.split(" | ")
        options = [re.fullmatch(r"(-\w+) (--[\w ]+?)( =)?( !)?", part) for part in parts]
        commands[name] = [
            Option(match[1], match[2], bool(match[3]), bool(match[4])) for match in options if match
        ]
        assert len(commands[name]) == len(parts), line
    return commands


def test_every_command_is_there() -> None:
    assert set(CATALOG) == set(declared()) | OWN


@pytest.mark.parametrize("name", CATALOG.keys() - OWN)
def test_options_are_those_of_rocketmq(name: str) -> None:
    ours = {
        opt: param
        for param in load(name).params
        if isinstance(param, click.Option)
        for opt in param.opts
    }
    for option in declared()[name]:
        param = ours[option.short]
        assert option.long in param.opts, option
        assert param.is_flag != option.takes_value, option
        required = option.required or (name, option.short) in STRICTER
        assert param.required == (required and (name, option.short) not in OPTIONAL), option
    assert {"-n", "--namesrvAddr", "--output"} <= set(ours)


@pytest.mark.parametrize("name", CATALOG)
def test_option_names_are_unique(name: str) -> None:
    opts = [opt for param in load(name).params for opt in param.opts]
    assert len(opts) == len(set(opts))
    assert "-h" not in opts


def test_names_are_found_in_any_case() -> None:
    assert find_name("CLUSTERLIST") == "clusterList"
    assert find_name("decodemessageid") == "DecodeMessageId"
    assert find_name("deleteAccessConfig") == "deleteAclConfig"
    assert find_name("hastatus") == "haStatus"
    assert find_name("addBroker") is None


def test_help_imports_no_command() -> None:
    """The list of commands is printed without importing the client library: help must be fast."""
    program = (
        "import sys; from core_broker.mqadmin.cli import cli\n"
        "try: cli(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = [m for m in ('asyncio', 'core_broker.client', 'rich') if m in sys.modules]\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(f"  {name} " in done.stdout for name in CATALOG)


def test_every_command_and_option_is_documented() -> None:
    document = (Path(__file__).parents[3] / "docs" / "mqadmin.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|(.*)$", document, re.M))
    assert set(rows) == set(CATALOG)
    missing = [
        f"{name} {param.opts}"
        for name in CATALOG
        for param in load(name).params
        if not any(f"`{opt}`" in document or f"/{opt}`" in rows[name] for opt in param.opts)
        and param.opts
    ]
    assert not missing
