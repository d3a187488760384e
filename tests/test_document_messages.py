"""docs/troubleshooting.md quotes messages as the programs print them."""

import ast
import re
from functools import cache

import pytest

from tests.support.source_tree import ROOT, texts

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"^\*\*`([^`]+)`", PAGE, re.MULTILINE)
#: Messages of other programs: Java clients, and the text before a remark in their exceptions.
FOREIGN = ("No route info of this topic", "CODE: 13 DESC: ")
PROGRAMS = ("console/", "core_broker/", "namesrv/", "spark_jobs/", "tools/", "trace/")
#: Shorter parts between variable ones tell nothing.
PART_CHARS_MIN = 6


@cache
def printed() -> str:
    """The texts in the sources, one per line, with `…` for variable parts."""
    found = []
    for name, text in texts(".py", ".sh"):
        if not name.startswith(PROGRAMS):
            continue
        if name.endswith(".sh"):
            found.append(re.sub(r"\$\{?\w+\}?", "…", text))
            continue
        tree = ast.parse(text)
        inside = {
            part
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
            if part is not node
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(constant_or_gap(part) for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if node not in inside:
                    found.append(re.sub(r"\{\w*\}|%\(\w+\)[sd]|%[sd]", "…", node.value))
    return "\n".join(" ".join(text.split()) for text in found)


def constant_or_gap(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "…"


@pytest.mark.parametrize("message", [each for each in QUOTED if each != FOREIGN[0]])
def test_a_quoted_message_is_a_text_of_the_programs(message: str) -> None:
    parts = re.split(r"…|\d+", message.removeprefix(FOREIGN[1]))
    known = [part.strip(" ().,;:") for part in parts]
    known = [part for part in known if len(part) >= PART_CHARS_MIN]
    assert known, "nothing but variable parts"
    assert not [part for part in known if part not in printed()]


def test_the_page_has_an_entry_for_frequent_messages() -> None:
    assert len(QUOTED) > 45
