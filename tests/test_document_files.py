"""Files in documents: settings, variables, YAML, JSON and expressions, read by their own readers.

The first line of a block names the file: `# broker.conf …`. The heading names a body in JSON.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
import yaml

from console.environment import read_environment
from console.gateway.acl_users.entries import check_entries, read_line
from core_broker.auth.acl1.reading import read_acl_file
from core_broker.client import ClientTls
from core_broker.config import BrokerConfig, NamesrvConfig
from core_broker.config.loading import (
    load_broker_config,
    load_controller_config,
    load_namesrv_config,
)
from core_broker.config.property_files import parse_properties
from core_broker.definitions.reading import read as read_definitions
from core_broker.filter.sql92 import compile_sql92
from core_broker.remoting.bodies.auth import AccessInventoryBody
from core_broker.remoting.bodies.inventory import (
    ClientInventoryBody,
    GroupInventoryBody,
    KickedClientBody,
    TopicInventoryBody,
)
from tests.support.document_blocks import FILES, Block, blocks_of
from tests.support.source_tree import ROOT, texts

#: Bodies of docs/private-codes.md by request code.
BODIES = {
    "60000": TopicInventoryBody,
    "60001": GroupInventoryBody,
    "60002": ClientInventoryBody,
    "60004": AccessInventoryBody,
    "60006": KickedClientBody,
}
BLOCKS = [
    block
    for document, _ in texts(".md")
    for block in blocks_of(document)
    if block.language in FILES and not block.excuse and "/zh/" not in document
]


def settings_file(load: Callable[..., object]) -> Callable[[Path, str], None]:
    """A reader of settings: the start of the program would print no warning."""

    def read(folder: Path, code: str) -> None:
        file = folder / "settings.conf"
        file.write_text(code)
        loaded = load(["-c", str(file)], {})
        assert loaded.warnings == (), loaded.warnings  # type: ignore[attr-defined]

    return read


def variables(folder: Path, code: str) -> None:
    """gantry.env: the console starts with the variables; the named files exist."""
    environ = {entry.key: entry.value for entry in parse_properties(code)}
    for file in re.findall(r"/etc/gantry/([\w.-]+)", code):
        (folder / file).write_text("secret")
    placed = {name: text.replace("/etc/gantry", str(folder)) for name, text in environ.items()}
    read_environment({**placed, "GANTRY_HOME": str(folder)})


def tls_keys(folder: Path, code: str) -> None:
    file = folder / "tls.properties"
    file.write_text(code)
    settings = ClientTls.from_file(str(file))
    assert settings.trust_cert_path
    assert settings.check_host_name


def accounts(folder: Path, code: str) -> None:
    assert read_acl_file("plain_acl.yml", code, 0).accounts


def definitions(folder: Path, code: str) -> None:
    assert read_definitions(code).objects


def scrapes(folder: Path, code: str) -> None:
    """prometheus.yml: the targets are the default ports of the three programs."""
    [job] = yaml.safe_load(code)["scrape_configs"]
    ports = {int(each.rpartition(":")[2]) for each in job["static_configs"][0]["targets"]}
    side_ports = {NamesrvConfig().http_port, BrokerConfig().http_port}
    assert ports == {*side_ports, 8082}
    assert job["authorization"]["type"] == "Bearer"


def system_settings(folder: Path, code: str) -> None:
    """50-gantry.conf: each key is one of this kernel's, with a number as value."""
    for entry in parse_properties(code):
        value = Path("/proc/sys", *entry.key.split(".")).read_text(encoding="ascii")
        assert value.strip().isdecimal(), f"{entry.key} is no number"
        assert entry.value.isdecimal(), f"{entry.key} = {entry.value}"


READERS: Mapping[str, Callable[[Path, str], None]] = {
    "broker.conf": settings_file(load_broker_config),
    "namesrv.conf": settings_file(load_namesrv_config),
    "controller.conf": settings_file(load_controller_config),
    "gantry.env": variables,
    "prod-tls.properties": tls_keys,
    "plain_acl.yml": accounts,
    "cluster.yaml": definitions,
    "prometheus.yml": scrapes,
    "50-gantry.conf": system_settings,
}


@pytest.mark.parametrize(
    "block",
    [each for each in BLOCKS if each.language in {"properties", "yaml"}],
    ids=lambda block: block.place,
)
def test_a_file_is_read_by_its_reader(block: Block, tmp_path: Path) -> None:
    name = re.match(r"# (?:/[\w./]+/)?([\w.-]+)", block.code)
    assert name, "the first line names no file"
    assert name[1] in READERS, f"the first line names none of {sorted(READERS)}"
    READERS[name[1]](tmp_path, block.code)


@pytest.mark.parametrize(
    "block",
    [each for each in BLOCKS if each.document.endswith("private-codes.md")],
    ids=lambda block: block.place,
)
def test_a_body_of_a_request_code_has_the_members_of_the_code(block: Block) -> None:
    before = (ROOT / block.document).read_text(encoding="utf-8").partition(block.code)[0]
    code = re.findall(r"^## (\d+) ", before, re.M)[-1]
    body = msgspec.json.decode(block.code, type=BODIES[code])
    assert has(json.loads(msgspec.json.encode(body)), json.loads(block.code))


def has(read: object, documented: object) -> bool:
    """Return whether all documented members were read; absent ones have a default."""
    if isinstance(documented, dict) and isinstance(read, dict):
        return all(has(read.get(name), value) for name, value in documented.items())
    if isinstance(documented, list) and isinstance(read, list):
        return len(read) == len(documented) and all(map(has, read, documented))
    return read == documented


@pytest.mark.parametrize(
    "block", [each for each in BLOCKS if each.language == "sql"], ids=lambda block: block.place
)
def test_an_expression_is_compiled(block: Block) -> None:
    compile_sql92(block.code.strip())


def test_no_file_is_passed_over() -> None:
    """Bodies in JSON: those of request codes, and of a webhook (tests/unit/alarms)."""
    bodies = {block.document for block in BLOCKS if block.language == "json"}
    assert bodies == {"docs/private-codes.md", "docs/alarms.md"}
    assert len(BLOCKS) > 25


@pytest.mark.parametrize("document", ["docs/console.md", "docs/zh/console.md"])
def test_the_entries_of_an_access_control_list_can_be_saved(document: str) -> None:
    [entries] = [each.code for each in blocks_of(document) if each.code.startswith("Allow ")]
    assert len(check_entries([read_line(line) for line in entries.splitlines()])) == 3


def test_variables_in_front_of_commands_are_valid() -> None:
    """`CONSOLE_CLUSTERS=… make up`."""
    found = [
        (name, value)
        for document, _ in texts(".md")
        for block in blocks_of(document)
        if block.language == "sh"
        for name, value in re.findall(r"^(CONSOLE_\w+)='([^']+)' ", block.code, re.M)
    ]
    assert found
    for name, value in found:
        read_environment({name: value, "SECRET_KEY": "x" * 50})
