"""Meanings of broker settings, from the tables of docs/settings.md if the file is installed.

The catalogue `settings.po` beside the area's texts translates the meanings; `manage.py translate`
collects them.
"""

import re
from functools import cache
from gettext import NullTranslations, translation
from pathlib import Path

from django.utils.translation import get_language, to_locale

from console.project_files import project_file

_ROW = re.compile(r"^\| `([\w.]+)` \|(.*)\|\s*$")
#: Phrases of meanings that are wrong for a broker of Apache RocketMQ.
_GANTRY_ONLY = re.compile(r"Not used|this version|true is refused|manage\.py|Gantry's own")
#: A link of the document; pages show its text.
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SECTION = "\n## Broker\n"
DOCUMENT = "docs/settings.md"
DOMAIN = "settings"
LOCALE_DIR = Path(__file__).with_name("locale")


def meanings(*, apache: bool = False) -> dict[str, str]:
    """Meaning of each broker key in the language of the reader.

    With `apache`, meanings that hold for Gantry's brokers only are left out: a page for brokers of
    Apache RocketMQ must not show them.
    """
    return _meanings(get_language() or "en", apache=apache)


@cache
def _meanings(language: str, *, apache: bool) -> dict[str, str]:
    texts = _catalogue(language)
    return {
        key: _LINK.sub(r"\1", texts.gettext(text))
        for key, text in written().items()
        if not (apache and _GANTRY_ONLY.search(text))
    }


def _catalogue(language: str) -> NullTranslations:
    return translation(DOMAIN, LOCALE_DIR, [to_locale(language)], fallback=True)


@cache
def written() -> dict[str, str]:
    """Meaning of each broker key as written: the last column of the row, without backticks.

    Without the document, the result is empty.
    """
    path = project_file(DOCUMENT)
    if not path.exists():
        return {}
    section = path.read_text(encoding="utf-8").partition(_SECTION)[2].partition("\n## ")[0]
    rows = filter(None, map(_ROW.match, section.splitlines()))
    return {row[1]: row[2].split("|")[-1].strip().replace("`", "") for row in rows}
