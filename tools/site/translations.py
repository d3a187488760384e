"""Anchors of English headings in Chinese pages: a link with an anchor fits both languages.

Headings of a translation have the order of the original (tests/test_documents.py), so that each
gets the anchor of its English heading beside its own.
"""

import re

from pymdownx.slugs import slugify  # type: ignore[import-untyped]

from tools.site.links import FENCE

HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
#: A note to writers, such as the test that runs a block.
COMMENT = re.compile(r"^<!-- .*? -->\n", re.MULTILINE)
_slugified = slugify(case="lower")


def with_english_anchors(chinese: str, english: str) -> str:
    """Return the Chinese page with anchors; unchanged when the headings are not those of English.

    The start page of the Chinese part is no translation.
    """
    anchors = [slug(title) for _, title in headings(english)]
    if [level for level, _ in headings(chinese)] != [level for level, _ in headings(english)]:
        return chinese
    remaining = iter(anchors)

    def marked(found: re.Match[str]) -> str:
        anchor = next(remaining)
        # The title stays the first element of the page; it needs no anchor.
        return found[0] if found[1] == "#" else f'<div id="{anchor}"></div>\n\n{found[0]}'

    parts = FENCE.split(chinese)
    return "".join(
        part if number % 2 else HEADING.sub(marked, part) for number, part in enumerate(parts)
    )


def slug(title: str) -> str:
    """Return the anchor of a heading, as mkdocs.yml makes it."""
    return str(_slugified(title.replace("`", ""), "-"))


def headings(text: str) -> list[tuple[int, str]]:
    """Return level and title of each heading."""
    found = HEADING.findall("".join(FENCE.split(text)[::2]))
    return [(len(marks), title) for marks, title in found]
