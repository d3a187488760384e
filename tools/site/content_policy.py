"""Moves inline scripts of built pages into files: the console's content policy allows none.

`console/frame/content_policy.py` has the policy, `default-src 'self'`. Scripts of the theme read
nothing but the page and the local storage, so that a file of the same folder can replace them.
"""

import hashlib
import re
from pathlib import Path

#: A script in the page; scripts with a type (the JSON of the theme) and with a source stay.
INLINE_SCRIPT = re.compile(r"<script>(.+?)</script>", re.DOTALL)
FOLDER = "assets/inline"
DIGEST_CHARS = 12

#: File name -> text of a script.
Extracted = dict[str, str]


def extract(page: str, to_root: str, extracted: Extracted) -> str:
    """Return the page with `src` instead of script texts; `to_root` leads to the site's root."""

    def moved(found: re.Match[str]) -> str:
        text = found[1]
        name = f"{hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]}.js"
        extracted[name] = text
        return f'<script src="{to_root}{FOLDER}/{name}"></script>'

    return INLINE_SCRIPT.sub(moved, page)


def write(extracted: Extracted, site: Path) -> None:
    folder = site / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in extracted.items():
        (folder / name).write_text(text, encoding="utf-8")
