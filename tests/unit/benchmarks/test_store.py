"""The store scenarios run and return their measurements."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.store import CLIENTS, KEYS_PER_MESSAGE, SCENARIOS, Options, lines, run


def measured(name: str, folder: Path) -> dict[str, Any]:
    return run(Options(scenario=name, folder=folder, seconds=0.2, log_mib=1, keys=2_000))


@pytest.mark.parametrize("name", ["store-append-100", "store-append-1024"])
def test_appending(tmp_path: Path, name: str) -> None:
    figures = measured(name, tmp_path)
    assert figures["messages"] > 0
    assert len(lines(name, figures)) == 1


def test_group_commit_with_each_number_of_clients(tmp_path: Path) -> None:
    figures = measured("store-group-commit", tmp_path)
    assert [each.split()[0] for each in lines("store-group-commit", figures)] == list(
        map(str, CLIENTS)
    )
    assert all(each["rate"] > 0 for each in figures["clients"].values())


def test_queries_find_each_message_among_many_keys(tmp_path: Path) -> None:
    figures = measured("store-key-query", tmp_path)
    assert figures["indexed"] == 2_000 // KEYS_PER_MESSAGE * KEYS_PER_MESSAGE
    assert len(lines("store-key-query", figures)) == 2


def test_recovery_after_a_kill(tmp_path: Path) -> None:
    figures = measured("store-recovery", tmp_path)
    assert figures["rebuild_seconds"] >= 0
    assert len(lines("store-recovery", figures)) == 1
    assert len(SCENARIOS) == 5
