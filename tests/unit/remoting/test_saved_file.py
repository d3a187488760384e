"""Saves of small files: one at a time, the newest content, an answer for every change."""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core_broker.durable_files import replace_file
from core_broker.errors import RequestRefused
from core_broker.remoting import saved_file
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.saved_file import SavedFile


class Peer:
    """A connection that keeps the answers."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, int, str | None]] = []

    def answer(self, request: RemotingCommand, response: RemotingCommand) -> None:
        self.answers.append((request.opaque, response.code, response.remark))


class Content:
    """Content that changes with every change, and counts its encodings."""

    def __init__(self) -> None:
        self.version = 0
        self.encodings = 0

    def encode(self) -> bytes:
        self.encodings += 1
        return str(self.version).encode()


def changer(file: SavedFile, content: Content, peer: Any) -> Callable[[], None]:
    def change() -> None:
        file.check_capacity()
        content.version += 1
        request = RemotingCommand(0, {"value": "x" * 1000}, b"y" * 1000, opaque=content.version)
        file.answer_when_saved(peer, request)

    return change


async def test_changes_during_a_save_share_the_next_save(tmp_path: Path) -> None:
    content, peer = Content(), Peer()
    file = SavedFile(tmp_path / "f", content.encode)
    change = changer(file, content, peer)
    change()
    await asyncio.sleep(0)  # the first save is running
    for _ in range(500):
        change()
    await file.drain()
    assert content.encodings == 2
    assert file.path.read_bytes() == b"501"
    assert [each.name for each in tmp_path.iterdir()] == ["f"]
    assert peer.answers == [(number, 0, None) for number in range(1, 502)]
    change()
    await file.drain()
    assert file.path.read_bytes() == b"502"


async def test_an_answer_waits_for_the_save_of_its_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = Content()
    saved = []

    class CheckingPeer(Peer):
        def answer(self, request: RemotingCommand, response: RemotingCommand) -> None:
            super().answer(request, response)
            saved.append(int(file.path.read_bytes()) >= request.opaque)

    file = SavedFile(tmp_path / "f", content.encode)
    change = changer(file, content, CheckingPeer())
    for _ in range(5):
        change()
        await asyncio.sleep(0.001)
    await file.drain()
    assert saved == [True] * 5


async def test_waiting_changes_are_limited_and_hold_no_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_file, "PENDING_CHANGES_MAX", 3)
    content, peer = Content(), Peer()
    file = SavedFile(tmp_path / "f", content.encode)
    change = changer(file, content, peer)
    change()
    await asyncio.sleep(0)
    change()
    request = RemotingCommand(0, {"value": "x"}, b"y", remark="z")
    file.answer_when_saved(peer, request)  # type: ignore[arg-type]
    assert (request.ext_fields, request.body, request.remark) == ({}, b"", None)
    with pytest.raises(RequestRefused, match=r"3 changes wait for the save of .*/f") as raised:
        change()
    assert raised.value.code == ResponseCode.SYSTEM_BUSY
    assert content.version == 2
    await file.drain()
    change()
    await file.drain()
    assert len(peer.answers) == 4


async def test_a_failed_write_keeps_the_old_content(tmp_path: Path) -> None:
    content, peer = Content(), Peer()
    file = SavedFile(tmp_path / "f", content.encode)
    replace_file(file.path, [b"old"])
    (tmp_path / "f.tmp").mkdir()
    change = changer(file, content, peer)
    change()
    change()
    await file.drain()
    assert file.path.read_bytes() == b"old"
    assert [code for _, code, _ in peer.answers] == [1, 1]
    assert "changed in memory only" in (peer.answers[0][2] or "")
    (tmp_path / "f.tmp").rmdir()
    change()
    await file.drain()
    assert peer.answers[2][1] == 0
    assert file.path.read_bytes() == b"3"


async def test_a_full_disk_leaves_no_unfinished_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, peer = Content(), Peer()
    file = SavedFile(tmp_path / "f", content.encode)

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        changer(file, content, peer)()
        await file.drain()
    assert "No space left" in (peer.answers[0][2] or "")
    assert list(tmp_path.iterdir()) == []
