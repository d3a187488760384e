"""Starting again: after a clean stop, after a crash, with files cut, lost or damaged."""

import logging
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core_broker.errors import StoreCorrupt
from core_broker.message.record import decode_record
from core_broker.store.checkpoint import Checkpoint, save_checkpoint
from core_broker.store.files import DiskFiles, Files
from tests.support.stores import NOW_MS, SEGMENT_BYTES, Bench, message, query, read_queue

ROOT = Path("/store")


def crashed(root: Path, count: int = 60, **changes: Any) -> Bench:
    """A killed store: no file is closed, and the lock is free."""
    bench = Bench(root, **changes).open()
    for number in range(count):
        bench.put(message(number, queue_id=number % 2))
    abandon(bench)
    return bench


def abandon(bench: Bench) -> None:
    """End a store as SIGKILL does: only the operating system closes things."""
    assert bench.store._locks is not None
    bench.store._locks.release()


def stopped(root: Path, count: int = 60, **changes: Any) -> None:
    bench = crashed_not_yet(root, count, **changes)
    bench.store.close()


def crashed_not_yet(root: Path, count: int, **changes: Any) -> Bench:
    bench = Bench(root, **changes).open()
    for number in range(count):
        bench.put(message(number, queue_id=number % 2))
    return bench


def contents(root: Path, files: Files | None = None) -> dict[str, Any]:
    """Start a store, record all served messages, and stop the store."""
    bench = Bench(root, files).open()
    store = bench.store
    keys = [f"order-{number}" for number in range(0, 60, 7)]
    found = {
        "log": (store.min_offset_physical, store.max_offset_physical),
        "messages": [read_queue(store, queue_id=each) for each in (0, 1)],
        "units": [store.queue_units("TopicTest", each, 0, 999) for each in (0, 1)],
        "keys": [query(store, each).records for each in keys],
    }
    store.close()
    return found


def bodies(found: dict[str, Any]) -> list[bytes]:
    """All bodies in the order of the log."""
    messages = [each for queue in found["messages"] for each in queue]
    return [each.body for each in sorted(messages, key=lambda each: each.offset_physical)]


def expected(count: int) -> list[bytes]:
    return [b"message %d" % number for number in range(count)]


def log_path(root: Path, start: int = 0) -> Path:
    return root / "commitlog" / f"{start:020d}"


def test_a_clean_stop_leaves_what_java_leaves(tmp_path: Path) -> None:
    stopped(tmp_path)
    assert not (tmp_path / "abort").exists()
    assert (tmp_path / "lock").read_bytes() == b"lock"
    assert (tmp_path / "checkpoint").stat().st_size == 4096
    assert bodies(contents(tmp_path)) == expected(60)


def test_a_clean_start_reads_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(tmp_path)
    records: list[int] = []
    bench = Bench(tmp_path)
    dispatch = bench.store._dispatcher.dispatch

    def counting(record: Any) -> None:
        records.append(1)
        dispatch(record)

    monkeypatch.setattr(bench.store._dispatcher, "dispatch", counting)
    bench.open()
    assert records == []
    bench.store.close()


def test_a_crash_loses_nothing_that_was_written(tmp_path: Path) -> None:
    crashed(tmp_path)
    assert (tmp_path / "abort").read_text() == DiskFiles().boot_id()
    assert bodies(contents(tmp_path)) == expected(60)


def test_offsets_and_times_go_on_after_a_restart(tmp_path: Path) -> None:
    crashed(tmp_path)
    bench = Bench(tmp_path).open()
    bench.now_ms -= 3_600_000  # the clock was set back
    (result,) = bench.put(message(60))
    assert result.offset_logical == 30
    assert result.store_timestamp == bench.now_ms + 3_600_000
    bench.store.close()


def lose_power(root: Path, start: int, end: int) -> None:
    """Zero a part of the log, as after a power cut."""
    (root / "abort").write_text("another boot")
    with log_path(root).open("r+b") as file:
        file.seek(start)
        file.write(bytes(end - start))


def test_new_messages_follow_a_cut_and_old_ones_do_not_come_back(tmp_path: Path) -> None:
    bench = crashed(tmp_path, 20)
    unit = bench.store.queue_units("TopicTest", 0, 5, 1)[0]
    # One sector did not reach the disk; later sectors did.
    lose_power(tmp_path, unit.offset_physical, 2048)
    bench = Bench(tmp_path).open()
    assert bench.store.max_offset_physical == unit.offset_physical
    (result,) = bench.put(message(10))  # of the size of the dropped record
    assert (result.offset_physical, result.offset_logical) == (unit.offset_physical, 5)
    abandon(bench)
    assert bodies(contents(tmp_path)) == expected(11)


def test_records_of_an_earlier_use_of_a_segment_do_not_count(tmp_path: Path) -> None:
    crashed(tmp_path, 5)
    data = bytearray(log_path(tmp_path).read_bytes())
    end = data.index(bytes(64))
    first = decode_record(data, 0)
    data[end : end + first.store_size] = data[: first.store_size]
    log_path(tmp_path).write_bytes(data)
    assert bodies(contents(tmp_path)) == expected(5)


def damage_remove(path: Path) -> None:
    path.unlink()


def damage_shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def damage_scramble(path: Path) -> None:
    path.write_bytes(random.Random(str(path.name)).randbytes(path.stat().st_size))


def derived_files(root: Path) -> list[Path]:
    folders = (root / "consumequeue", root / "index")
    return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


DAMAGES = [damage_remove, damage_shorten, damage_empty, damage_zero, damage_scramble]


def assert_same_bytes(root: Path, expected: Path) -> None:
    names = [each.relative_to(expected) for each in derived_files(expected)]
    assert [each.relative_to(root) for each in derived_files(root)] == names
    for name in names:
        assert (root / name).read_bytes() == (expected / name).read_bytes(), name


@pytest.mark.parametrize("is_crash", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_reliability_06_each_queue_or_index_file_is_built_again(
    tmp_path: Path, damage: Callable[[Path], None], is_crash: bool
) -> None:
    original = tmp_path / "original"
    stopped(original)
    if is_crash:
        (original / "abort").touch()
    before = contents(shutil.copytree(original, tmp_path / "before"))
    names = [each.relative_to(original) for each in derived_files(original)]
    assert len(names) > 5
    for name in names:
        root = shutil.copytree(original, tmp_path / "copy")
        damage(root / name)
        assert contents(root) == before, name
        assert_same_bytes(root, tmp_path / "before")
        shutil.rmtree(root)


@pytest.mark.parametrize("is_crash", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_reliability_06_all_of_them_at_once(
    tmp_path: Path, damage: Callable[[Path], None], is_crash: bool
) -> None:
    root = tmp_path / "store"
    stopped(root)
    if is_crash:
        (root / "abort").touch()
    before = contents(shutil.copytree(root, tmp_path / "before"))
    for path in derived_files(root):
        damage(path)
    assert contents(root) == before
    assert_same_bytes(root, tmp_path / "before")


@pytest.mark.parametrize("is_crash", [False, True])
@pytest.mark.parametrize(
    "lost",
    [
        ["consumequeue"],
        ["index"],
        ["consumequeue/TopicTest/1"],
        ["consumequeue", "index", "checkpoint", "dispatchCheckpoint.json"],
        ["dispatchCheckpoint.json"],
        ["checkpoint"],
    ],
)
def test_the_commit_log_is_enough(tmp_path: Path, lost: list[str], is_crash: bool) -> None:
    (crashed if is_crash else stopped)(tmp_path / "store")
    root = tmp_path / "store"
    before = contents(shutil.copytree(root, tmp_path / "before"))
    for name in lost:
        path = root / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    assert contents(root) == before


def test_damage_in_the_middle_is_reported_and_nothing_else_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = crashed_not_yet(tmp_path, 60)
    unit = bench.store.queue_units("TopicTest", 0, 10, 1)[0]
    bench.store.close()
    with log_path(tmp_path).open("r+b") as file:
        file.seek(unit.offset_physical + 90)
        file.write(b"#")
    shutil.rmtree(tmp_path / "consumequeue")
    bench = Bench(tmp_path).open()
    found = [each.body for each in read_queue(bench.store, queue_id=1)]
    assert found == expected(60)[1::2]
    bench.store.close()
    assert (
        f"{log_path(tmp_path)} is damaged at {unit.offset_physical}: its body does not match the"
        f" checksum (log offset {unit.offset_physical}). The records behind it are kept."
        in caplog.text
    )


def test_the_index_ends_at_the_very_time_of_its_newest_message_after_a_crash(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path).open()
    bench.put(message(0))
    bench.now_ms += 479
    bench.put(message(1))
    bench.tick(60_000)
    abandon(bench)
    bench = Bench(tmp_path).open()
    assert query(bench.store, "order-1").index_last_update_timestamp == NOW_MS + 479
    bench.store.close()


def test_a_missing_segment_in_front_is_as_if_it_had_expired(tmp_path: Path) -> None:
    stopped(tmp_path, 200)
    log_path(tmp_path).unlink()
    for name in ("consumequeue", "index"):
        shutil.rmtree(tmp_path / name)
    bench = Bench(tmp_path).open()
    assert bench.store.min_offset_physical == SEGMENT_BYTES
    low, high = bench.store.queue_range("TopicTest", 0)
    assert (low > 0, high) == (True, 100)
    assert [each.queue_offset for each in read_queue(bench.store)] == list(range(low, 100))
    bench.store.close()


def test_the_refusal_of_a_cut_last_segment_contains_a_command_that_works(tmp_path: Path) -> None:
    stopped(tmp_path, 200)
    (tmp_path / "dispatchCheckpoint.json").unlink()  # as after a Java broker
    last = max((tmp_path / "commitlog").iterdir())
    os.truncate(last, SEGMENT_BYTES // 2)
    with pytest.raises(StoreCorrupt, match=str(last)) as raised:
        Bench(tmp_path).open()
    command = re.search(r"run mqstore (verify .*) for the list", str(raised.value))
    assert command is not None
    options = shlex.split(command[1])
    assert options == ["verify", str(tmp_path), "--mapped-file-size-commit-log", f"{SEGMENT_BYTES}"]
    verify = [sys.executable, "-m", "core_broker.mqstore", *options]
    verified = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert verified.returncode == 1
    assert last.name in verified.stdout


def test_the_advice_names_a_commit_log_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "fast disk"
    bench = Bench(tmp_path / "store", store_path_commit_log=str(elsewhere)).open()
    bench.put(message(0))
    bench.store.close()
    (tmp_path / "store" / "dispatchCheckpoint.json").unlink()
    os.truncate(elsewhere / f"{0:020d}", SEGMENT_BYTES // 2)
    with pytest.raises(StoreCorrupt, match=f"DIR --store-path-commit-log '{elsewhere}'"):
        Bench(tmp_path / "store", store_path_commit_log=str(elsewhere)).open()


def test_without_any_segment_the_store_begins_anew(tmp_path: Path) -> None:
    stopped(tmp_path)
    shutil.rmtree(tmp_path / "commitlog")
    bench = Bench(tmp_path).open()
    assert bench.store.topics_on_disk() == []
    assert bench.put(message(0))[0].offset_logical == 0
    bench.store.close()


def test_a_segment_of_another_size_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    stopped(tmp_path)
    before = log_path(tmp_path).read_bytes()
    with pytest.raises(StoreCorrupt, match="mappedFileSizeCommitLog is 32768"):
        Bench(tmp_path, mapped_file_size_commit_log=32768).open()
    assert log_path(tmp_path).read_bytes() == before
    assert bodies(contents(tmp_path)) == expected(60)


def test_a_folder_that_java_left_is_read_from_the_segment_of_its_checkpoint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path).open()
    for number in range(200):
        bench.now_ms += 1000
        bench.put(message(number, queue_id=number % 2))
    abandon(bench)
    (tmp_path / "dispatchCheckpoint.json").unlink(missing_ok=True)
    bench.store._queues.write_tails()
    flushed = bench.now_ms - 20_000
    save_checkpoint(DiskFiles(), tmp_path / "checkpoint", Checkpoint(flushed, flushed, 0))
    with caplog.at_level(logging.INFO, "core_broker.store"):
        Bench(tmp_path).open().store.close()
    counts = re.findall(r"(\d+) records were read again", caplog.text)
    assert 20 < int(counts[-1]) < 150
    assert bodies(contents(tmp_path)) == expected(200)


def test_a_topic_that_was_created_again_begins_at_zero_after_a_rebuild(tmp_path: Path) -> None:
    bench = Bench(tmp_path).open()
    bench.put_many(30)
    bench.store.delete_topic("TopicTest")
    bench.put_many(10, first=100)
    bench.store.close()
    shutil.rmtree(tmp_path / "consumequeue")
    bench = Bench(tmp_path).open()
    found = [each.body for each in read_queue(bench.store)]
    assert found == [b"message %d" % number for number in range(100, 110)]
    bench.store.close()


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_broker.store.recovery.PROGRESS_BYTES", 1000)
    crashed(tmp_path)
    told: list[tuple[str, float]] = []
    bench = Bench(tmp_path)
    bench.store.load(lambda what, share: told.append((what, share)))
    bench.store.close()
    assert told[0] == ("loading", 0.0)
    assert told[-1] == ("recovered", 1.0)
    assert len(told) > 5
    assert all(0 <= share <= 1 for _, share in told)
