"""The scenario files against their expected logs; `tests/support/raft_scenarios.py` runs them."""

import os
from pathlib import Path

import pytest

from tests.support.raft_scenarios import replayed

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    log = replayed(path)
    if os.environ.get("GANTRY_REWRITE"):
        path.write_text(log, encoding="utf-8")
    assert log == path.read_text(encoding="utf-8")


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 8
