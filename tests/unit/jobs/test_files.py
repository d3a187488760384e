"""Files of jobs: whole or not there, bounded, and gone after their time."""

import os
import time
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from console.services.jobs import files
from console.services.jobs.paths import job_files

KEPT_S = 3 * 24 * 3600


@pytest.fixture(autouse=True)
def _home(settings: Settings, tmp_path: Path) -> None:
    settings.JOB_FILE_DAYS, settings.JOB_FILES_MB = 3, 1
    settings.GANTRY_HOME = tmp_path


def test_a_file_is_there_when_it_is_whole() -> None:
    assert files.listing(7) == []
    with files.writing(7, "orders.jsonl") as file:
        file.write(b"{}\n")
        assert files.listing(7) == []
    [found] = files.listing(7)
    assert (found.name, found.size_bytes) == ("orders.jsonl", 3)
    assert found.expires_ms - found.written_ms == KEPT_S * 1000
    path = files.path_of(7, "orders.jsonl")
    assert path is not None
    assert path.read_bytes() == b"{}\n"


def test_what_broke_half_way_leaves_nothing() -> None:
    def partial() -> None:
        with files.writing(7, "a.csv") as file:
            file.write(b"partial")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        partial()
    assert files.listing(7) == []
    assert list(job_files(7).iterdir()) == []


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", ".hidden", "a\x00", "x" * 200, "a b", "ä.csv"]
)
def test_names_stay_in_the_folder(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name"), files.writing(7, name):
        pass
    assert files.path_of(7, name) is None


def test_a_link_out_of_the_folder_is_a_file_of_the_console_only() -> None:
    """Names are looked up among finished files only."""
    with files.writing(7, "a.csv"):
        pass
    (job_files(7) / "b.csv.partial").write_bytes(b"")
    (job_files(7) / "folder").mkdir()
    assert [file.name for file in files.listing(7)] == ["a.csv"]
    assert files.path_of(7, "b.csv.partial") is None
    assert files.path_of(7, "folder") is None


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MEGABYTE", 10)
    monkeypatch.setattr(files, "FILES_MAX", 2)
    with files.writing(7, "a") as file:
        file.write(b"123456")
    with pytest.raises(files.FilesTooLarge), files.writing(7, "b") as file:
        file.write(b"12345")
    with files.writing(7, "b") as file:
        file.write(b"1234")
    with pytest.raises(files.FilesTooLarge), files.writing(7, "c"):
        pass
    assert [file.name for file in files.listing(7)] == ["a", "b"]


def test_files_expire() -> None:
    for number in (7, 8):
        with files.writing(number, "a"):
            pass
    old_s = time.time() - KEPT_S - 60
    os.utime(job_files(7) / "a", (old_s, old_s))
    assert files.listing(7) == []
    assert files.path_of(7, "a") is None
    os.utime(job_files(7), (old_s, old_s))
    assert files.expire() == 1
    assert not job_files(7).exists()
    assert files.listing(8)
    assert files.expire(time.time() + KEPT_S + 60) == 1
    assert files.expire() == 0


def test_forgetting_takes_the_folder() -> None:
    with files.writing(7, "a"):
        pass
    files.forget_files(7)
    files.forget_files(7)
    assert not job_files(7).exists()
