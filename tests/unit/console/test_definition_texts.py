"""Every text of the core about definitions is among the texts that the console translates."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils.translation import override

from console.areas.definitions.texts import TEXTS, localized
from core_broker.definitions.model import DefinitionsError
from core_broker.definitions.reading import read
from core_broker.errors import FormattedText

TREE = Path(__file__).resolve().parents[3]
SOURCES = [
    TREE / "core_broker/yaml_nodes.py",
    *sorted((TREE / "core_broker/definitions").glob("*.py")),
    *sorted((TREE / "console/areas/definitions").glob("*.py")),
]
RAISED = {"FormattedText", "YamlError", "DefinitionsError"}


def templates(path: Path) -> Iterator[str]:
    """First arguments of the calls that make a text, also through the variable `text`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if not isinstance(function, ast.Module | ast.FunctionDef):
            continue
        held = [
            str(node.value.value)
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "text"
            and isinstance(node.value, ast.Constant)
        ]
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id not in RAISED or not node.args:
                continue
            first = node.args[0]
            if isinstance(first, ast.Constant):
                yield str(first.value)
            elif isinstance(first, ast.Name) and first.id == "text":
                yield from held


def test_the_texts_are_those_of_the_source() -> None:
    raised = {text for path in SOURCES for text in templates(path)}
    assert len(raised) > 30
    assert raised - set(TEXTS) == set()
    assert set(TEXTS) - raised == set()


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_has_a_chinese_one_with_the_same_places(text: str) -> None:
    class Places(dict[str, str]):
        def __missing__(self, name: str) -> str:
            return f"<{name}>"

    with override("zh-hans"):
        chinese = localized(text)
    assert chinese != text
    places = {part.split("}")[0] for part in text.split("{")[1:]}
    assert {part.split("}")[0] for part in chinese.split("{")[1:]} == places
    assert chinese.format_map(Places({name.partition("!")[0]: "x" for name in places}))


def test_values_that_are_texts_are_translated_too() -> None:
    with pytest.raises(DefinitionsError) as fault:
        read("format: gantry/definitions/1\nacls:\n  User:u: {Custom: [{action: [Pub]}]}\n")
    assert str(fault.value).startswith("line 3: an entry of User:u has no key 'action'")
    with override("zh-hans"):
        assert localized(fault.value.text).startswith("第 3 行")
        assert "an entry" not in localized(fault.value.text)
    assert localized("a remark of a broker {with} braces") == "a remark of a broker {with} braces"
    assert localized(FormattedText("{name} is none of {words}.", name="{x}", words="")) == (
        "{x} is none of ."
    )
