"""The documentation site: links, content policy, reference, and answers in two clicks."""

import re
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from drf_spectacular.generators import SchemaGenerator

import gantry
import gantry.errors
import gantry.sync
from core_broker.config import BrokerConfig, ControllerConfig, NamesrvConfig
from core_broker.mqadmin.catalog import CATALOG
from tests.support.site import PageParts, read_page
from tests.support.source_tree import ROOT
from tools.site.translations import headings, slug

pytestmark = pytest.mark.timeout(600)

#: Questions of a newcomer, and the page with the answer.
ANSWERS = {
    "How do I resend dead letters?": ("How to", "Resend dead letters"),
    "How do I secure it?": ("How to", "Secure a cluster"),
    "How do I run three replicas?": ("How to", "Run three replicas"),
}
CSS_LOADS = re.compile(r"""(?:@import\s+|url\()\s*["']?(?:https?:)?//""")
#: A list, a table or a block of code that Markdown took for text.
NO_MARKUP = re.compile(r"^(?:[-*] |\d+\. |\|.*\|$|```|#+ |::: )", re.MULTILINE)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, PageParts]:
    """The pages by address below the site's root."""
    found = {
        path.relative_to(site).as_posix(): read_page(path) for path in sorted(site.rglob("*.html"))
    }
    assert len(found) > 60
    return found


def test_links_and_anchors_lead_somewhere(site: Path, pages: dict[str, PageParts]) -> None:
    broken = []
    for name, page in pages.items():
        for link in page.links:
            if urlsplit(link.href).scheme or link.href.startswith("//"):
                continue
            address, anchor = urldefrag(link.href)
            target = (site / name).parent / unquote(address) if address else site / name
            found = pages.get(target.resolve().relative_to(site.resolve()).as_posix())
            if not target.exists() or (anchor and found and unquote(anchor) not in found.ids):
                broken.append(f"{name}: {link.href}")
    assert not broken


def test_no_page_loads_from_another_host(site: Path, pages: dict[str, PageParts]) -> None:
    foreign = [
        f"{name}: {address}"
        for name, page in pages.items()
        for address in page.loaded
        if urlsplit(address).netloc
    ]
    foreign += [
        str(path.relative_to(site))
        for path in site.rglob("*.css")
        if CSS_LOADS.search(path.read_text(encoding="utf-8"))
    ]
    assert not foreign
    # The theme loads the program for these drawings from another host.
    assert not [name for name in pages if 'class="mermaid"' in (site / name).read_text()]


def test_pages_fit_the_content_policy_of_the_console(pages: dict[str, PageParts]) -> None:
    assert not {name: page.inline for name, page in pages.items() if page.inline}


def test_markup_is_understood(pages: dict[str, PageParts]) -> None:
    """GitHub takes lists without a blank line before them, Python-Markdown does not."""
    wrong = [
        f"{name}: {found[0]} … {text[:80]}"
        for name, page in pages.items()
        for text in page.paragraphs
        if (found := NO_MARKUP.search(text))
    ]
    assert not wrong


@pytest.mark.parametrize("question", ANSWERS)
def test_a_newcomer_finds_the_answer_in_two_clicks(
    pages: dict[str, PageParts], question: str
) -> None:
    """First a tab of the start page, then an entry of the navigation at the left."""
    tab, title = ANSWERS[question]
    [first] = [
        link.href
        for link in pages["index.html"].links
        if "md-tabs__link" in link.around and link.text.strip() == tab
    ]
    folder = Path(first).parent
    [second] = {
        (folder / link.href).as_posix()
        for link in pages[first].links
        if "md-nav--primary" in link.around and link.text.strip() == title
    }
    assert title in pages[second].text
    assert title in [link.text for link in pages["index.html"].links], "the start page names it"


def test_the_reference_has_everything(pages: dict[str, PageParts]) -> None:
    keys = pages["reference/keys.html"].text
    for kind in (BrokerConfig, NamesrvConfig, ControllerConfig):
        assert not [key for key in kind.keys() if key not in keys]  # noqa: SIM118
    commands = pages["reference/mqadmin.html"].ids
    assert not [name for name in CATALOG if f"mqadmin-{name.lower()}" not in commands]
    for name, names in (
        ("python", gantry.__all__),
        ("python-sync", gantry.sync.__all__),
        ("python-errors", gantry.errors.__all__),
    ):
        page = pages[f"reference/{name}.html"].text
        assert not [each for each in names if each not in page]


def test_the_reference_has_every_operation_of_the_rest_api(pages: dict[str, PageParts]) -> None:
    document = SchemaGenerator().get_schema(request=None, public=True)
    wanted = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    ids = {each for name, page in pages.items() if "/rest/" in name for each in page.ids}
    assert not wanted - ids


@pytest.mark.parametrize("name", ["console", "operations", "quickstart"])
def test_anchors_of_english_headings_lead_somewhere_in_chinese(
    pages: dict[str, PageParts], name: str
) -> None:
    titles = headings((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))
    english = pages[f"{name}.html"].ids & pages[f"zh/{name}.html"].ids
    assert len(titles) > 3
    assert not [title for _, title in titles[1:] if slug(title) not in english]


def test_notes_to_writers_are_not_part_of_a_page(site: Path, pages: dict[str, PageParts]) -> None:
    assert not [name for name in pages if "run by tests/" in (site / name).read_text()]


def test_chinese_pages_say_so_and_lead_to_the_english(pages: dict[str, PageParts]) -> None:
    for name in ("index", "quickstart", "console", "operations"):
        chinese, english = pages[f"zh/{name}.html"], pages[f"{name}.html"]
        assert (chinese.language, english.language) == ("zh", "en")
        assert f"../{name}.html" in [link.href for link in chinese.links]
        assert f"zh/{name}.html" in [link.href for link in english.links]
