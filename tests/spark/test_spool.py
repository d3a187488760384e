"""Values that wait in a task."""

from pathlib import Path

import pytest

from spark_jobs.spark.spool import LOCAL_FOLDERS, Spool


@pytest.mark.parametrize("held_bytes_max", [10, 1_000_000])
def test_values_come_back_by_key(held_bytes_max: int) -> None:
    given = [(number % 3, bytes([number]) * number) for number in range(40)]
    with Spool(held_bytes_max) as spool:
        for key, value in given:
            spool.add(key, value)
            assert next(spool.values(0)) == b""
        for key in (2, 0, 1, 2):
            assert list(spool.values(key)) == [value for of, value in given if of == key]
        assert list(spool.values(9)) == []


def test_values_beyond_the_bound_are_in_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOCAL_FOLDERS, f"{tmp_path},/nowhere")

    def files_in_folder() -> int:
        links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return sum(link.readlink().is_relative_to(tmp_path) for link in links)

    with Spool(1000) as spool:
        spool.add(1, bytes(1000))
        assert files_in_folder() == 0
        spool.add(1, bytes(1000))
        assert files_in_folder() == 1
        assert not list(tmp_path.iterdir())
    assert files_in_folder() == 0
