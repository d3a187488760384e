"""A data folder for tests that need an earlier start."""

from pathlib import Path

import pytest

from tests.up.gantry import INTERRUPTED, Gantry, why_not_typed


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder after the first start; all tests share the folder to save start time.

    Where a network of its own is possible, the start is `make up`.
    """
    home = tmp_path_factory.mktemp("gantry") / "home"
    with Gantry(home, typed="" if why_not_typed() else "make up") as gantry:
        gantry.until_ready()
        assert gantry.interrupt() in INTERRUPTED, gantry.text
        (home / "first_start").write_text(gantry.text)
        assert gantry.left_running() == []
    return home
