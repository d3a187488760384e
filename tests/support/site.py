"""The documentation site: built as `make site` builds it, and its pages as links and elements."""

import fcntl
import os
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from tests.support.source_tree import ROOT

BUILD_DEADLINE_S = 600.0
#: Elements that load their address at once; links of <a> wait for a click.
LOADING = {"script": "src", "img": "src", "source": "srcset", "iframe": "src", "link": "href"}
#: Scripts of this type are data.
DATA = "application/json"


def built_site(home: Path) -> Path:
    """Return the site in a folder of this run; the first process builds, the others wait."""
    folder = home / "site"
    with (home / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = home / "site.unfinished"
            _build(unfinished)
            unfinished.rename(folder)
    return folder


def _build(folder: Path) -> None:
    """Build both languages; a warning of MkDocs is an error, other lines are not."""
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    for config, target in (("mkdocs.yml", folder), ("mkdocs.zh.yml", folder / "zh")):
        done = subprocess.run(
            [*build, "-f", config, "-d", str(target)],
            cwd=ROOT,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
            capture_output=True,
            text=True,
            timeout=BUILD_DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@dataclass(slots=True)
class Link:
    """An <a> with its address, its text, and the classes of the elements around it."""

    href: str
    text: str
    around: frozenset[str]


@dataclass(slots=True)
class PageParts:
    """What the tests need of one page."""

    language: str = ""
    ids: set[str] = field(default_factory=set)
    links: list[Link] = field(default_factory=list)
    #: Addresses that the browser loads with the page.
    loaded: list[str] = field(default_factory=list)
    #: Scripts and styles in the page itself.
    inline: list[str] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)
    text: str = ""


class PageReader(HTMLParser):
    """Collects the parts of a page."""

    VOID = frozenset({"img", "link", "meta", "input", "br", "hr", "source", "path", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.parts = PageParts()
        self._open: list[tuple[str, frozenset[str]]] = []
        self._link: Link | None = None
        self._paragraph: list[str] | None = None
        self._texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        classes = frozenset(found.get("class", "").split())
        if tag == "html":
            self.parts.language = found.get("lang", "")
        if "id" in found:
            self.parts.ids.add(found["id"])
        if tag in LOADING and LOADING[tag] in found and found.get("rel") not in LINK_ONLY:
            self.parts.loaded.append(found[LOADING[tag]])
        if tag == "style" or (tag == "script" and "src" not in found and found.get("type") != DATA):
            self.parts.inline.append(self.get_starttag_text() or tag)
        self.parts.inline += [
            f"{tag} {name}" for name in found if name == "style" or name.startswith("on")
        ]
        if tag == "a" and "href" in found:
            around = frozenset().union(*(each for _, each in self._open), classes)
            self._link = Link(found["href"], "", around)
            self.parts.links.append(self._link)
        if tag == "p":
            self._paragraph = []
        if tag not in self.VOID:
            self._open.append((tag, classes))

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._link = None
        if tag == "p" and self._paragraph is not None:
            self.parts.paragraphs.append("".join(self._paragraph))
            self._paragraph = None
        for position in range(len(self._open) - 1, -1, -1):
            if self._open[position][0] == tag:
                del self._open[position:]
                break

    def handle_data(self, data: str) -> None:
        if self._link is not None:
            self._link.text += data
        is_code = any(tag in {"code", "pre"} for tag, _ in self._open)
        if self._paragraph is not None and not is_code:
            self._paragraph.append(data)
        self._texts.append(data)

    def close(self) -> None:
        super().close()
        self.parts.text = "".join(self._texts)


#: Relations of <link> that load nothing.
LINK_ONLY = frozenset({"canonical", "alternate", "next", "prev"})


def read_page(path: Path) -> PageParts:
    reader = PageReader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    return reader.parts
