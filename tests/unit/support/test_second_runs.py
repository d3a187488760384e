"""Tests for the list of tests that passed on the second run."""

import pytest

from tests.support.second_runs import FOLDERS, summary_lines


def report(name: str, outcome: str, when: str = "call") -> pytest.TestReport:
    place = (name, 1, name)
    return pytest.TestReport(name, place, {}, outcome, "the error\nmore", when)  # type: ignore[arg-type]


def test_a_test_that_passed_on_the_second_run_is_listed_with_its_error() -> None:
    first, second = "tests/up/test_a.py::test_first", "tests/up/test_a.py::test_second"
    reports = {
        "rerun": [report(first, "rerun", "setup"), report(second, "rerun")],
        "passed": [report(first, "passed")],
        "failed": [report(second, "failed")],
    }
    assert [*summary_lines(reports)] == [f"{first} (setup: the error)"]


def test_only_tests_of_browsers_and_foreign_programs_run_twice(
    request: pytest.FixtureRequest,
) -> None:
    assert all(
        each.nodeid.startswith(FOLDERS)
        for each in request.session.items
        if each.get_closest_marker("flaky")
    )
