"""Meanings of broker settings, from the tables of docs/settings.md if the file is installed."""

import re
from functools import cache

from django.conf import settings

_ROW = re.compile(r"^\| `(\w+)` \|(.*)\|\s*$")
DOCUMENT = "docs/settings.md"


@cache
def meanings() -> dict[str, str]:
    """Meaning by key: the last column of the row, without backticks; {} without the document."""
    path = settings.BASE_DIR / DOCUMENT
    if not path.exists():
        return {}
    rows = filter(None, map(_ROW.match, path.read_text(encoding="utf-8").splitlines()))
    return {row[1]: row[2].split("|")[-1].strip().replace("`", "") for row in rows}
