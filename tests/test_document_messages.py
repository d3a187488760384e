"""docs/troubleshooting.md quotes messages as the programs print them."""

import ast
import re
from collections.abc import Iterator

from tests.support.source_tree import ROOT, texts

PROGRAMS = ("console/", "core_broker/", "namesrv/", "spark_jobs/", "tools/", "trace/")
#: Parts of other programs (Java clients, Linux, the database), and parts that are put together.
FOREIGN = frozenset(
    {
        "No route info of this topic",
        "Address already in use",
        "Connection refused",
        "Permission denied",
        "no such table",
        "It is held by process",
        "property",
        "refused with CONTROLLER_NOT_LEADER",
    }
)
#: Where a message may have a variable part.
GAPS = re.compile(
    r"…|\d+|: |\. |; |[\[\]()“”'\",]|--[a-z-]+|\b(?:HTTP|SQL|TIMER_\w+|storePath\w+)\b"
)
#: Shorter parts say too little.
PART_CHARS_MIN = 8


def test_quoted_messages_are_texts_of_the_programs() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = [" ".join(each.split()) for each in re.findall(r"^\*\*`([^`]+)`", page, re.M)]
    assert len(quoted) > 45
    printed = "\n".join(" ".join(text.split()) for text in printed_texts())
    missing = [
        f"{message}: {part}"
        for message in quoted
        for part in (each.strip(" .").removeprefix("or ") for each in GAPS.split(message))
        if len(part) >= PART_CHARS_MIN and part not in FOREIGN
        if not is_in(part, printed)
    ]
    assert not missing


def is_in(part: str, texts: str) -> bool:
    """Without the texts in the failure of an assertion."""
    return part in texts


def printed_texts() -> Iterator[str]:
    """Yield the texts in the sources; f-strings have `…` for variable parts."""
    for name, text in texts(".py", ".sh"):
        if not name.startswith(PROGRAMS):
            continue
        if name.endswith(".sh"):
            yield text
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.JoinedStr):
                parts = (
                    part.value if isinstance(part, ast.Constant) else "…" for part in node.values
                )
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
