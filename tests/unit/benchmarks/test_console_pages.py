"""The addresses of the console's benchmark, and the choice of some of them."""

from pathlib import Path

import click
import pytest

from benchmarks.console import check_only
from benchmarks.console_pages import CLUSTER, chosen, pages

ADDRESSES = ["clusters/local/", "clusters/local/dlq/", "api/v1/clusters/local/dlq"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GANTRY_HOME", str(tmp_path))  # the benchmark sets the variable
    return tmp_path


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


def test_pages_name_the_client_and_the_message_of_the_running_cluster(home: Path) -> None:
    ids = {"offset_msg_id": "0A", "msg_id": "0B"}
    answers = {"clients": [{"client_id": "c-1"}], "items": [ids]}
    found = pages(home, lambda _path: answers)
    assert any("c-1" in each for each in found)
    assert any("0A" in each for each in found)
    assert not any("<" in each for each in found)
