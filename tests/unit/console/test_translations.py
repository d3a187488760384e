"""Chinese translations: complete, consistent with the source, compiled.

`manage.py translate` collects and compiles the texts; the tests need no gettext.
"""

import ast
import gettext
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from django.utils.translation import override
from django.utils.translation.template import templatize

from console.frame.templatetags.gantry import colon

CONSOLE = Path(__file__).resolve().parents[3] / "console"
PO = "locale/zh_Hans/LC_MESSAGES/django.po"
ROOTS = sorted(path.parents[3] for path in CONSOLE.rglob(PO))
IDS = [root.name for root in ROOTS]

#: Translation functions with the argument positions of context and text.
CALLS = {
    "_": (None, 0),
    "gettext": (None, 0),
    "gettext_noop": (None, 0),
    "gettext_lazy": (None, 0),
    "ngettext": (None, 0),
    "ngettext_lazy": (None, 0),
    "pgettext": (0, 1),
    "pgettext_lazy": (0, 1),
    "npgettext": (0, 1),
}
STRING = r"u?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
TEMPLATE_CALL = re.compile(rf"\b(_|n?p?gettext)\(\s*({STRING})(?:\s*,\s*({STRING}))?", re.DOTALL)
PLACEHOLDER = re.compile(r"%\([a-z_]+\)[sd]|%[sd]|\{[a-z_]*\}|<[^>]+>")

Key = tuple[str | None, str]


@dataclass
class Entry:
    """An entry of a .po file."""

    context: str | None = None
    text: str = ""
    plural: str | None = None
    translation: str = ""
    fuzzy: bool = False


def read_po(path: Path) -> list[Entry]:
    """The entries of a .po file, without the header."""
    entries = []
    for block in path.read_text(encoding="utf-8").split("\n\n")[1:]:
        entry, field = Entry(), ""
        for line in block.splitlines():
            if line.startswith("#"):
                entry.fuzzy |= line.startswith("#,") and "fuzzy" in line
                continue
            if line.startswith('"'):
                value = ast.literal_eval(line)
            else:
                field, _space, quoted = line.partition(" ")
                value = ast.literal_eval(quoted)
            match field:
                case "msgctxt":
                    entry.context = (entry.context or "") + value
                case "msgid":
                    entry.text += value
                case "msgid_plural":
                    entry.plural = (entry.plural or "") + value
                case "msgstr" | "msgstr[0]":
                    entry.translation += value
                case _:
                    raise AssertionError(f"{path}: {field}")
        entries.append(entry)
    return entries


def root_of(path: Path) -> Path:
    """The nearest parent folder with a locale folder."""
    return next(parent for parent in path.parents if parent in ROOTS)


@cache
def texts_in_source() -> dict[Path, list[Key]]:
    """The texts below each root, in the order of the files and of their lines."""
    found: dict[Path, dict[Key, None]] = defaultdict(dict)
    paths = [path for end in ("py", "html") for path in CONSOLE.rglob(f"*.{end}")]
    for root, path in sorted((root_of(path), path) for path in paths):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            found[root] |= dict.fromkeys(texts_of_python(ast.parse(text)))
        else:
            source = templatize(text, origin=str(path))
            found[root] |= dict.fromkeys(texts_of_template(source))
    return {root: list(texts) for root, texts in found.items()}


def texts_of_python(tree: ast.AST) -> Iterator[Key]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        if not isinstance(node.func, ast.Name):
            continue
        places = CALLS.get(node.func.id)
        if places is None or not node.args:
            continue
        values = [arg.value if isinstance(arg, ast.Constant) else None for arg in node.args]
        context = None if places[0] is None else values[places[0]]
        text = values[places[1]]
        if isinstance(text, str) and isinstance(context, str | None):
            yield context, text


def texts_of_template(source: str) -> Iterator[Key]:
    for match in TEMPLATE_CALL.finditer(source):
        first = ast.literal_eval(match[2])
        if match[1] in {"pgettext", "npgettext"}:
            yield first, ast.literal_eval(match[3])
        else:
            yield None, first


def test_translated_labels_end_with_the_colon_of_the_language() -> None:
    with override("zh-hans"):
        assert colon() == "\uff1a"
    label = re.compile(r'\{% translate "[^"]*"(?: context "[^"]*")? %\}:')
    wrong = [path for path in CONSOLE.rglob("*.html") if label.search(path.read_text("utf-8"))]
    assert not wrong, "write {% colon %}"


def test_every_area_keeps_its_texts() -> None:
    assert CONSOLE in ROOTS
    assert len(ROOTS) >= 4


@pytest.mark.parametrize("root", ROOTS, ids=IDS)
def test_texts_are_in_step_with_the_source(root: Path) -> None:
    kept = [(entry.context, entry.text) for entry in read_po(root / PO)]
    source = texts_in_source()[root]
    assert not {*source} - {*kept}, "run `manage.py translate` and fill what is empty"
    assert not {*kept} - {*source}, "run `manage.py translate`"
    assert kept == source, "another order: run `manage.py translate`"


@pytest.mark.parametrize("root", ROOTS, ids=IDS)
def test_every_text_is_translated_with_all_its_placeholders(root: Path) -> None:
    wrong = []
    for entry in read_po(root / PO):
        wanted = {frozenset(PLACEHOLDER.findall(entry.text))}
        if entry.plural is not None:
            wanted.add(frozenset(PLACEHOLDER.findall(entry.plural)))
        given = frozenset(PLACEHOLDER.findall(entry.translation))
        if entry.fuzzy or not entry.translation or given not in wanted:
            wrong.append(entry)
    assert not wrong


@pytest.mark.parametrize("root", ROOTS, ids=IDS)
def test_compiled_texts_are_those_of_the_source_file(root: Path) -> None:
    with (root / PO).with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    translated = [entry for entry in read_po(root / PO) if entry.translation]
    assert translated
    for entry in translated:
        if entry.context is not None:
            assert compiled.pgettext(entry.context, entry.text) == entry.translation
        elif entry.plural is not None:
            assert compiled.ngettext(entry.text, entry.plural, 2) == entry.translation
        else:
            assert compiled.gettext(entry.text) == entry.translation


def test_a_text_is_translated_the_same_everywhere() -> None:
    # Django merges all catalogues: with two translations of a text, the last catalogue wins.
    given: dict[Key, set[str]] = defaultdict(set)
    for root in ROOTS:
        for entry in read_po(root / PO):
            if entry.translation:
                given[entry.context, entry.text].add(entry.translation)
    assert not {key: found for key, found in given.items() if len(found) > 1}
