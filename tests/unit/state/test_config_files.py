"""state/config_files.py: a table is never lost to a crash or to damage."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from core_broker.durable_files import PARTS_PER_WRITE_MAX
from core_broker.errors import ProtocolError, StoreCorrupt
from core_broker.state.config_files import (
    backup_of,
    read_config,
    write_config,
)


def parse(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise ProtocolError(str(error)) from None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "topics.json"


def test_missing_files_read_as_none(path: Path) -> None:
    assert read_config(path, parse) is None


def test_the_previous_version_is_kept(path: Path) -> None:
    for version in (1, 2, 3):
        write_config(path, [b"%d" % version])
    assert read_config(path, parse) == 3
    assert backup_of(path).read_bytes() == b"2"
    assert sorted(each.name for each in path.parent.iterdir()) == [
        "topics.json",
        "topics.json.bak",
    ]


@pytest.mark.parametrize("damage", [b"", b"  \n", b'{"half":', b"\xff\xfe"])
def test_damage_falls_back_to_the_previous_version(path: Path, damage: bytes) -> None:
    write_config(path, [b"1"])
    write_config(path, [b"2"])
    path.write_bytes(damage)
    assert read_config(path, parse) == 1


def test_a_crash_during_a_replacement_keeps_a_version(path: Path) -> None:
    write_config(path, [b"1"])
    path.replace(backup_of(path))
    path.with_name("topics.json.tmp").write_bytes(b"2")
    assert read_config(path, parse) == 1


def test_a_file_system_without_hard_links(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(link: Path, target: Path) -> None:
        raise OSError("no hard links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    write_config(path, [b"1"])
    write_config(path, [b"2"])
    assert (path.read_bytes(), backup_of(path).read_bytes()) == (b"2", b"1")


def test_damage_without_a_way_back_stops_the_start(path: Path) -> None:
    write_config(path, [b"1"])
    write_config(path, [b"2"])
    path.write_bytes(b"{")
    backup_of(path).write_bytes(b"[")
    with pytest.raises(StoreCorrupt, match=r"topics\.json"):
        read_config(path, parse)


def test_two_empty_files_are_a_new_broker(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"")
    backup_of(path).write_bytes(b"")
    assert read_config(path, parse) is None


def test_a_folder_that_cannot_be_written_raises(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b"a file, not a folder")
    with pytest.raises(OSError, match="config"):
        write_config(tmp_path / "config" / "topics.json", [b"1"])


def test_many_parts_are_one_file(path: Path) -> None:
    parts = [b"%d," % number for number in range(3 * PARTS_PER_WRITE_MAX + 7)]
    write_config(path, parts)
    assert path.read_bytes() == b"".join(parts)


def test_short_writes_are_completed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux may write a part of the bytes, for example on a disk that is nearly full."""
    write = os.write
    monkeypatch.setattr(os, "writev", lambda fd, parts: write(fd, b"".join(parts)[:5]))
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:2]))
    write_config(path, [b"abc", b"defg", b"hij"])
    assert path.read_bytes() == b"abcdefghij"
