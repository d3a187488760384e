"""Blocks of code in documents: their commands, and runs of a page's `sh` blocks.

In the documents, a block ```sh is run by a test against running programs. Indented blocks show
commands that a test cannot run here (`make up`, `pip install`), or that a test of their own
covers; tests/test_documents.py checks their commands and options.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.source_tree import ROOT

RUN_DEADLINE_S = 180.0
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)
ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
SEPARATORS = frozenset({";", "|", "||", "&", "&&", "(", ")", ">", ">>", "<"})
SHELL_LANGUAGES = frozenset({"", "sh", "bash"})
PYTHON = ".venv/bin/python"
#: The programs run on this machine: a proxy of the environment cannot reach them.
NO_PROXY = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return [code for found, code in FENCED.findall(text) if found == language]


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command in the shell blocks of a document."""
    fenced = [code for language, code in FENCED.findall(text) if language in SHELL_LANGUAGES]
    for block in (*fenced, *INDENTED.findall(FENCED.sub("", text))):
        for line in block.replace("\\\n", " ").splitlines():
            yield from simple_commands(line)


def simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line, without assignments before the program's name."""
    lexer = shlex.shlex(line.strip().removeprefix("$ "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # output of a program, with a single quotation mark
        return
    command: list[str] = []
    for word in [*words, ";"]:
        if word in SEPARATORS:
            if command:
                yield command
            command = []
        elif command or not ASSIGNMENT.fullmatch(word):
            command.append(word)


def run_blocks(page: str, replacements: Mapping[str, str], **environ: str) -> str:
    """Run the `sh` blocks of a page below docs/ in one shell, and return what they print.

    `replacements` are texts of the page, such as addresses, and their values in the test.
    """
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    script = "set -eu\n" + "\n".join(blocks(text, "sh"))
    for old, new in {**replacements, PYTHON: sys.executable}.items():
        assert old in script, f"{page} no longer has {old!r}"
        script = script.replace(old, new)
    if re.search(r"^curl ", script, re.MULTILINE) and shutil.which("curl") is None:
        pytest.skip(f"the commands of {page} need curl, which is not installed here")
    return run(["/bin/sh", "-c", script], environ)


def run_program(page: str, replacements: Mapping[str, str], **environ: str) -> str:
    """Run the first Python block of a page below docs/, and return what the program prints."""
    code = blocks((ROOT / "docs" / page).read_text(encoding="utf-8"), "python")[0]
    for old, new in replacements.items():
        assert old in code, f"{page} no longer has {old!r}"
        code = code.replace(old, new)
    return run([sys.executable, "-W", "error", "-c", code], environ)


def run(command: list[str], environ: Mapping[str, str], folder: Path = ROOT) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **NO_PROXY, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=RUN_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
