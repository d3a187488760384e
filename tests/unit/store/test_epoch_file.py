"""epochFileCheckpoint: RocketMQ's text, damage, and a crash at every disk call."""

import errno
from contextlib import suppress
from pathlib import Path

import pytest

from core_broker.errors import StoreCorrupt
from core_broker.store.epoch_file import FILE_BYTES_MAX, EpochFile, encode_epochs, parse_epochs
from core_broker.store.epochs import EpochCache
from core_broker.store.files import Files, read_file, replace_file
from core_broker.store.simulated_files import SimulatedFiles

ROOT = Path("/store")
PATH = ROOT / "epochFileCheckpoint"
BAK = ROOT / "epochFileCheckpoint.bak"
OLD = EpochCache([(1, 0), (2, 500)])
NEW = EpochCache([(1, 0), (2, 500), (4, 900)])
CALLS_MAX = 50


def write(files: Files, path: Path, content: bytes) -> None:
    replace_file(files, path, content)


def test_the_text_of_rocketmq() -> None:
    text = b"3\n1544922653\n1-0\n2-4096\n5-1000000\n"
    assert encode_epochs(EpochCache([(1, 0), (2, 4096), (5, 1_000_000)])) == text
    assert parse_epochs(text).starts == [(1, 0), (2, 4096), (5, 1_000_000)]


def test_a_checksum_of_0_is_not_checked() -> None:
    assert parse_epochs(b"1\n0\n7-100\n").starts == [(7, 100)]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"1",
        b"1\n0",
        b"1\n0\n",
        b"2\n0\n1-0\n",
        b"1\n0\n1-0\n2-5\n",
        b"1\n5\n1-0\n",
        b"x\n0\n1-0\n",
        b"1\n-1\n1-0\n",
        b"1\n0\n1_0\n",
        b"1\n0\n1-\n",
        b"1\n0\n1--1\n",
        b"1\n0\n+1-0\n",
        b"1\n0\n1-0-3\n",
        b"2\n0\n2-0\n1-5\n",
        b"2\n0\n1-5\n2-4\n",
        b"1\n0\n99999999999-0\n",
        b"1\n0\n1-99999999999999999999999\n",
        b"1\n0\n\xff-0\n",
    ],
)
def test_any_other_text_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the reason differs
        parse_epochs(text)


def test_without_a_file_there_are_no_epochs() -> None:
    assert EpochFile(SimulatedFiles(), PATH).load() == EpochCache()


@pytest.mark.parametrize("damage", [b"", b"2\n77\n1-0\n2-9\n", b"1" * (FILE_BYTES_MAX + 1)])
def test_a_damaged_file_gives_way_to_its_previous_version(damage: bytes) -> None:
    files = SimulatedFiles()
    file = EpochFile(files, PATH)
    file.save(OLD)
    file.save(NEW)
    write(files, PATH, damage)
    assert file.load() == OLD
    write(files, BAK, damage)
    with pytest.raises(StoreCorrupt, match="epochFileCheckpoint"):
        file.load()


def test_a_truncation_leaves_no_older_version() -> None:
    files = SimulatedFiles()
    file = EpochFile(files, PATH)
    file.save(NEW)
    file.save_truncated(OLD)
    assert read_file(files, BAK) == read_file(files, PATH) == encode_epochs(OLD)
    file.save_truncated(EpochCache())
    assert file.load() == EpochCache()
    assert files.names(ROOT) == []


@pytest.mark.parametrize("call", range(1, CALLS_MAX))
def test_a_power_cut_at_any_call_leaves_the_old_or_the_new_epochs(call: int) -> None:
    for seed in range(10):
        files = SimulatedFiles(seed)
        file = EpochFile(files, PATH)
        file.save(EpochCache([(1, 0)]))
        file.save(OLD)
        left = call

        def fault(operation: str, path: Path) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise OSError(errno.EIO, operation, str(path))

        files.fault = fault
        is_saved = False
        with suppress(OSError):
            file.save(NEW)
            is_saved = True
        files.power_cut()
        found = EpochFile(files, PATH).load()
        assert found == NEW if is_saved else found in (OLD, NEW), seed
