"""The addresses of the console's benchmark: their arguments, and the choice of some of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from benchmarks.console import check_only, mark_of
from benchmarks.console_objects import CLUSTER, SOURCES, find_objects
from benchmarks.console_pages import LEFT_OUT, OBJECTS, arguments_of, chosen, pages

ADDRESSES = ["clusters/local/", "clusters/local/dlq/", "api/v1/clusters/local/dlq"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GANTRY_HOME", str(tmp_path))  # the benchmark sets the variable
    return tmp_path


def lists(*without: str) -> Callable[[str], Any]:
    """An API whose lists have one row each, with the object `the-NAME`; some lists are empty."""

    def ask(path: str) -> Any:
        answer: dict[str, list[dict[str, str]]] = {"items": [{}], "clients": [{}]}
        for name, source in SOURCES.items():
            if source.path.partition("{")[0] in path and name not in without:
                answer[source.rows][0].setdefault(source.field, f"the-{name}")
        return answer

    return ask


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ADDRESSES),
        ("dlq", ADDRESSES[1:]),
        ("/dlq/", ADDRESSES[1:2]),
        ("/clusters/local/dlq/", ADDRESSES[1:2]),
        ("/api/", ADDRESSES[2:]),
        ("nothing", []),
    ],
)
def test_an_address_is_chosen_with_and_without_its_slash(text: str, found: list[str]) -> None:
    assert chosen(ADDRESSES, text) == found


def test_a_choice_of_nothing_is_refused_with_the_addresses(home: Path) -> None:
    with pytest.raises(click.BadParameter) as refusal:
        check_only(home, "no-such-page")
    assert "'no-such-page'" in str(refusal.value)
    assert f"\n  {CLUSTER}/dlq/\n" in str(refusal.value)
    assert "<client>" in str(refusal.value)


@pytest.mark.parametrize("text", ["", "/clusters/local/dlq/", "range=30d", "api/v1/"])
def test_a_choice_of_something_passes(home: Path, text: str) -> None:
    check_only(home, text)


def test_an_object_of_an_object_is_asked_with_its_name() -> None:
    asked = []

    def ask(path: str) -> Any:
        asked.append(path)
        return {"items": [{"id": 7, "name": "rows.jsonl"}]}

    found = find_objects(ask, "t", "g")
    assert f"{CLUSTER}/jobs/7/files" in asked
    assert (found["file_job"], found["file"]) == ("7", "rows.jsonl")
    assert (found["topic"], found["group"]) == ("t", "g")


def test_objects_that_do_not_exist_are_absent() -> None:
    """A refusal has no rows, and nothing is asked about an object that does not exist."""
    asked: list[str] = []

    def ask(path: str) -> Any:
        asked.append(path)
        return {"title": "Access control is off"} if "acl" in path else {"items": []}

    assert find_objects(ask, "t", "g") == {"topic": "t", "group": "g"}
    assert not any("/files" in each for each in asked)


@pytest.mark.parametrize(
    ("route", "name", "value"),
    [
        ("message:detail", "offset_msg_id", "a message"),
        ("deadletters:letter", "offset_msg_id", "a dead letter"),
        ("jobs:detail", "number", "a job"),
        ("jobs:file", "number", "a job with a file"),
        ("alarms:rule", "number", "a rule"),
        ("alarms:detail", "number", "an alarm"),
        ("topics:detail", "cluster", "local"),
    ],
)
def test_an_argument_is_an_object_of_the_route(route: str, name: str, value: str) -> None:
    found = {
        "offset_msg_id": "a message",
        "letter": "a dead letter",
        "job": "a job",
        "file_job": "a job with a file",
        "alarm": "an alarm",
        "alarm_rule": "a rule",
    }
    assert arguments_of(route, [name], found) == {name: value}
    assert arguments_of(route, ["unknown"], found) == {}


def test_every_route_has_its_arguments_or_a_reason(home: Path) -> None:
    """A new page with an argument that the benchmark does not know would never be measured."""
    check_only(home, "")  # sets Django up
    from tests.support.routes import routes

    found = dict.fromkeys((*SOURCES, "topic", "group"), "it")
    measured = [
        each
        for each in routes()
        if "get" in each.methods and not each.is_classic and each.name not in LEFT_OUT
    ]
    missing = {
        each.name: each.arguments.keys() - arguments_of(each.name, each.arguments, found).keys()
        for each in measured
    }
    assert {name: names for name, names in missing.items() if names} == {}


def test_what_is_left_out_and_what_is_named_exists(home: Path) -> None:
    check_only(home, "")
    from tests.support.routes import routes

    names = [each.name for each in routes()]
    assert set(LEFT_OUT) <= set(names)
    for begin, _argument, _object in OBJECTS:
        assert any(name.startswith(begin) for name in names), begin


def test_pages_name_the_objects_of_the_running_cluster(home: Path) -> None:
    found = pages(home, lists())
    for part in ("the-client", "the-offset_msg_id", "the-acl_user", "?account=the-acl_user"):
        assert any(part in each for each in found), part
    assert not any("<" in each or "{" in each for each in found)


def test_pages_of_objects_that_do_not_exist_are_left_out(home: Path) -> None:
    found = pages(home, lists("acl_user", "client"))
    assert not any(part in each for each in found for part in ("the-acl_user", "access-check"))
    assert f"{CLUSTER}/acl-users/" in found


@pytest.mark.parametrize(
    ("p95_ms", "disposition", "mark"),
    [
        (199.0, "", ""),
        (200.0, "", "!"),
        (200.0, "inline", "!"),
        (900.0, 'attachment; filename="x.csv"', "file"),
    ],
)
def test_a_slow_row_is_marked_unless_it_is_a_file(
    p95_ms: float, disposition: str, mark: str
) -> None:
    assert mark_of(p95_ms, disposition) == mark
