"""The summary of must-beat items, and titles for all marks of the suite."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.must_beat import PROPERTY, TITLES, MustBeat

TESTS = Path(__file__).parents[2]
#: The folders that `make must-beat` runs.
RUN = ("api", "browser", "compat", "up", "unit/console")


def marks() -> Iterator[tuple[str, int]]:
    """(file, item) of every `pytest.mark.must_beat(…)`."""
    for path in set(TESTS.rglob("test_*.py")) - {Path(__file__)}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == PROPERTY
                and isinstance(argument := node.args[0], ast.Constant)
                and isinstance(argument.value, int)
            ):
                yield path.relative_to(TESTS).as_posix(), argument.value


def test_every_mark_has_a_title_and_every_title_a_mark() -> None:
    numbers = {number for _file, number in marks()}
    assert numbers == set(TITLES)


def test_every_marked_test_is_run_by_make_must_beat() -> None:
    assert not [file for file, _number in marks() if not file.startswith(RUN)]


def report(number: int, outcome: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid="test_it",
        location=("test_it.py", 1, "test_it"),
        keywords={},
        outcome=outcome,  # type: ignore[arg-type]
        longrepr=None,
        when="call",
        user_properties=[(PROPERTY, number)],
    )


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], "no test"),
        (["passed", "passed"], "pass"),
        (["passed", "skipped"], "skipped"),
        (["failed", "passed"], "FAIL"),
    ],
)
def test_the_worst_outcome_of_an_item_counts(outcomes: list[str], expected: str) -> None:
    items = MustBeat()
    for outcome in outcomes:
        items.pytest_runtest_logreport(report(4, outcome))
    assert items.outcome(4) == expected


def test_a_mark_without_a_title_is_an_error() -> None:
    class Item:
        nodeid = "test_it"
        user_properties: list[tuple[str, object]] = []

        def iter_markers(self, _name: str) -> list[pytest.Mark]:
            return [pytest.mark.must_beat(999).mark]

    with pytest.raises(pytest.UsageError, match="must_beat\\(999\\) has no title"):
        MustBeat().pytest_collection_modifyitems([Item()])  # type: ignore[list-item]
