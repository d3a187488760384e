"""What the keys of a broker mean, from the tables of docs/settings.md where they are at hand."""

import re
from functools import cache

from django.conf import settings

_ROW = re.compile(r"^\| `(\w+)` \|(.*)\|\s*$")
DOCUMENT = "docs/settings.md"


@cache
def meanings() -> dict[str, str]:
    """By key: the last column of its row, without marks; empty when the document is not there."""
    path = settings.BASE_DIR / DOCUMENT
    if not path.exists():
        return {}
    rows = filter(None, map(_ROW.match, path.read_text(encoding="utf-8").splitlines()))
    return {row[1]: row[2].split("|")[-1].strip().replace("`", "") for row in rows}
