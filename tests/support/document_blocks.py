"""Blocks of code in documents: which test runs or reads each, and runs of a page's blocks.

A block of commands (`sh`, `python`) has a comment in the line before:

    <!-- run by tests/up/test_demo.py -->
    <!-- not run: needs Kubernetes -->

`<!-- blocks run by tests/client/test_docs.py -->` in a line of its own is for the blocks of the
page without a comment. Blocks of files (`properties`, `yaml`, `json`, `sql`) are read by
tests/test_document_files.py, unless a comment says why not. `text` is output or a drawing.
Chinese pages have no comments: their blocks are those of the English page.

tests/test_documents.py finds blocks that are neither run nor excused. A test file runs the blocks
that name the file, by `run_blocks` and `run_program`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.source_tree import ROOT

RUN_DEADLINE_S = 180.0
BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]+) -->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)
PAGE_RUNNER = re.compile(r"^<!-- blocks run by (\S+) -->$", re.MULTILINE)
RUNNER, EXCUSE = "run by ", "not run: "
COMMANDS = frozenset({"sh", "python"})
FILES = frozenset({"json", "properties", "sql", "yaml"})
LANGUAGES = COMMANDS | FILES | {"text"}

ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
SEPARATORS = frozenset({";", "|", "||", "&", "&&", "(", ")", ">", ">>", "<"})
PYTHON = ".venv/bin/python"
#: Commands of an installed package, and the modules that they start.
PROGRAMS = {"mqadmin": "core_broker.mqadmin", "mqstore": "core_broker.mqstore", "gantry": "gantry"}
WHOLE = slice(None)
#: The programs run on this machine: a proxy of the environment cannot reach them.
NO_PROXY = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `runner` is the path of the test that runs it, `excuse` why none does."""

    document: str
    line: int
    language: str
    code: str
    runner: str
    excuse: str

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}"


def blocks_of(document: str, text: str = "") -> list[Block]:
    """Return the blocks of a document, a path below the project's root."""
    text = text or (ROOT / document).read_text(encoding="utf-8")
    of_page = PAGE_RUNNER.search(text)
    found = []
    for each in BLOCK.finditer(text):
        note, language = each["note"] or "", each["language"]
        if PAGE_RUNNER.fullmatch(f"<!-- {note} -->"):
            note = ""
        runner = note.removeprefix(RUNNER) if note.startswith(RUNNER) else ""
        excuse = note.removeprefix(EXCUSE) if note.startswith(EXCUSE) else ""
        if of_page and language in COMMANDS and not note:
            runner = of_page[1]
        line = text.count("\n", 0, each.start("language")) + 1
        found.append(Block(document, line, language, each["code"], runner, excuse))
    return found


def outside_of_blocks(text: str) -> str:
    """Return the text of a document without its fenced blocks."""
    return BLOCK.sub("", text)


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command in the `sh` blocks of a document."""
    for block in BLOCK.finditer(text):
        if block["language"] == "sh":
            for line in block["code"].replace("\\\n", " ").splitlines():
                yield from simple_commands(line)


def simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line, without assignments before the program's name."""
    lexer = shlex.shlex(line.strip(), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a line of a text with an apostrophe
        return
    command: list[str] = []
    for word in [*words, ";"]:
        if word in SEPARATORS:
            if command:
                yield command
            command = []
        elif command or not ASSIGNMENT.fullmatch(word):
            command.append(word)


def run_blocks(
    page: str,
    test: str,
    replacements: Mapping[str, str],
    *,
    part: slice = WHOLE,
    folder: Path = ROOT,
    before: str = "",
    typed: str = "",
    **environ: str,
) -> str:
    """Run the `sh` blocks of a page that name `test`, a test file, and return what they print.

    The page is a path below docs/; a part of its blocks, or all, run in one shell, in `folder`,
    behind the commands `before`. `replacements` are texts of the page, such as addresses, and
    their values in the test; `typed` is standard input.
    """
    code = "\n".join(each.code for each in _blocks_run_by(test, page, "sh")[part])
    script = f"set -eu\n{before}\n{_replaced(code, page, replacements)}"
    if re.search(r"\bcurl ", script) and shutil.which("curl") is None:
        pytest.skip(f"the commands of {page} need curl, which is not installed here")
    script = script.replace(PYTHON, sys.executable).replace(" manage.py", f" {ROOT}/manage.py")
    with TemporaryDirectory() as programs:
        for name, module in PROGRAMS.items():
            program = Path(programs, name)
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
            program.chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        shell = shutil.which("bash") or "/bin/sh"
        return run([shell, "-c", script], {"PATH": path, **environ}, folder, typed)


def run_program(page: str, test: str, replacements: Mapping[str, str], **environ: str) -> str:
    """Run the first Python block of a page that names `test`, and return what it prints."""
    code = _blocks_run_by(test, page, "python")[0].code
    code = _replaced(code, page, replacements)
    return run([sys.executable, "-W", "error", "-c", code], environ)


def _blocks_run_by(test: str, page: str, language: str) -> list[Block]:
    """Return the blocks of a page below docs/ that name a test file, given as its `__file__`."""
    name = Path(test).resolve().relative_to(ROOT).as_posix()
    found = [
        each
        for each in blocks_of(f"docs/{page}")
        if each.language == language and each.runner == name
    ]
    assert found, f"no {language} block of {page} names {name}"
    return found


def _replaced(code: str, page: str, replacements: Mapping[str, str]) -> str:
    for old, new in replacements.items():
        assert old in code, f"{page} no longer has {old!r}"
        code = code.replace(old, new)
    return code


def run(
    command: list[str], environ: Mapping[str, str], folder: Path = ROOT, typed: str = ""
) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **NO_PROXY, "PYTHONPATH": str(ROOT), **environ},
        input=typed,
        capture_output=True,
        text=True,
        timeout=RUN_DEADLINE_S,
        check=False,
        start_new_session=True,  # no terminal: passwords are read from standard input
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
