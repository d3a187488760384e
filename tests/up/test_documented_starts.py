"""Starts in the documents, word by word: README, quickstart, security, the how-to pages.

Each command runs in a network of its own, with the ports of the documents, until Ctrl-C. `make up`
makes the data folder of this package's tests (conftest.py). The other commands get new folders with
the database of that start, and nothing else.
"""

import re
import shutil
from pathlib import Path

import pytest

from console.launcher.prepare import DATABASE_NAME, STAMP_NAME
from tests.support.document_blocks import blocks_of
from tests.up.gantry import INTERRUPTED, Gantry, why_not_typed

#: Pages with starts, also secure-a-cluster, run-three-replicas, from-rocketmq.
PAGES = (
    "README.md",
    "docs/quickstart.md",
    "docs/security.md",
    "docs/howto/secure-a-cluster.md",
    "docs/howto/run-three-replicas.md",
    "docs/migrating/from-rocketmq.md",
)
THIS = "tests/up/test_documented_starts.py"
FIRST = "make up"
#: Lines of the output, by a word of the command.
PRINTED = {
    "demo": "^  demo +a shop;",
    "--secure": "^  access +signed requests over TLS;",
    "--replicas 3": "^  replica 3 ",
    "--brokers 4": "^  broker-d ",
}

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_not_typed()), reason=why_not_typed()),
]


def starts() -> list[str]:
    """The commands of all pages, each once, without remarks."""
    lines = [
        re.sub(r" +#.*", "", line)
        for page in PAGES
        for block in blocks_of(page)
        if block.runner == THIS
        for line in block.code.splitlines()
    ]
    return list(dict.fromkeys(lines))


def test_every_page_has_a_start() -> None:
    runners = {page: {block.runner for block in blocks_of(page)} for page in PAGES}
    assert [page for page, found in runners.items() if THIS not in found] == []
    assert FIRST in starts()
    assert [word for word in PRINTED if not any(word in each for each in starts())] == []


@pytest.mark.parametrize("command", [each for each in starts() if each != FIRST])
def test_the_command_starts_and_ends_with_ctrl_c(command: str, home: Path, tmp_path: Path) -> None:
    own = tmp_path / "home"
    for name in (DATABASE_NAME, "secret_key", STAMP_NAME):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(home / name, own / name)
    with Gantry(own, typed=command) as gantry:
        gantry.until_ready()
        assert has_documented_addresses(gantry.text), gantry.text
        for word, line in PRINTED.items():
            assert bool(re.search(line, gantry.text, re.M)) == (word in command), gantry.text
        assert gantry.interrupt() in INTERRUPTED
        assert "Gantry has stopped; no program is left running." in gantry.text
        assert gantry.left_running() == []


def test_make_up_starts_at_the_documented_addresses(home: Path) -> None:
    assert has_documented_addresses((home / "first_start").read_text())


def has_documented_addresses(printed: str) -> bool:
    return bool(
        re.search("^  name server +127.0.0.1:9876,", printed, re.M)
        and re.search("^Gantry is ready: http://127.0.0.1:8082$", printed, re.M)
    )
