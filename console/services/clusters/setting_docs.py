"""Meanings of broker settings, from the tables of docs/settings.md if the file is installed."""

import re
from functools import cache

from console.project_files import project_file

_ROW = re.compile(r"^\| `([\w.]+)` \|(.*)\|\s*$")
#: Phrases of meanings that are wrong for a broker of Apache RocketMQ.
_GANTRY_ONLY = re.compile(r"Not used|this version|true is refused|manage\.py|Gantry's own")
_SECTION = "\n## Broker\n"
DOCUMENT = "docs/settings.md"


@cache
def meanings(*, apache: bool = False) -> dict[str, str]:
    """Meaning of each broker key: the last column of the row, without backticks.

    Without the document, the result is empty. With `apache`, meanings that hold for Gantry's
    brokers only are left out: a page for brokers of Apache RocketMQ must not show them.
    """
    path = project_file(DOCUMENT)
    if not path.exists():
        return {}
    section = path.read_text(encoding="utf-8").partition(_SECTION)[2].partition("\n## ")[0]
    rows = filter(None, map(_ROW.match, section.splitlines()))
    found = {row[1]: row[2].split("|")[-1].strip().replace("`", "") for row in rows}
    if not apache:
        return found
    return {key: text for key, text in found.items() if not _GANTRY_ONLY.search(text)}
