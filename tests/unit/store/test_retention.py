"""Rules of deletion; queues and index follow the log."""

import time
from pathlib import Path
from typing import Any

import pytest

from core_broker.config import BrokerConfig
from core_broker.store import PutStatus
from core_broker.store.files import DiskUsage
from core_broker.store.retention import HOUR_MS, DiskState, decide, is_hour
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import NOW_MS, SEGMENT_BYTES, Bench, message, read_queue

HOUR_NOW = time.localtime(NOW_MS / 1000).tm_hour
OLD = NOW_MS - 73 * HOUR_MS
YOUNG = NOW_MS - 71 * HOUR_MS
ROOT = Path("/store")


def decided(percent: float, modified: list[int], *, is_manual: bool = False, **changes: Any) -> int:
    config = BrokerConfig(**{"delete_when": "99"} | changes)
    state = DiskState(percent / 100, 0.1, modified)
    return decide(state, config, NOW_MS, is_manual=is_manual).expired


def test_old_segments_go_at_the_hour_set() -> None:
    assert decided(50, [OLD, OLD, YOUNG]) == 0
    assert decided(50, [OLD, OLD, YOUNG], delete_when=f"{HOUR_NOW:02d}") == 2
    assert decided(50, [OLD, OLD, YOUNG], delete_when=f"99;{HOUR_NOW}") == 2


def test_or_at_any_hour_when_the_disk_is_rather_full_or_somebody_asks() -> None:
    assert decided(76, [OLD, YOUNG]) == 1
    assert decided(75, [OLD, YOUNG]) == 0
    assert decided(50, [OLD, YOUNG], is_manual=True) == 1


def test_the_ratio_counts_within_bounds() -> None:
    assert decided(11, [OLD], disk_max_used_space_ratio=0) == 1
    assert decided(9, [OLD], disk_max_used_space_ratio=0) == 0
    assert decided(96, [OLD], disk_max_used_space_ratio=100, clean_file_forcibly_enable=False) == 1


def test_age_does_not_count_when_the_disk_is_very_full() -> None:
    assert decided(86, [OLD, YOUNG, YOUNG]) == 3
    assert decided(86, [OLD, YOUNG], clean_file_forcibly_enable=False) == 1
    assert decided(86, [YOUNG] * 40) == 10  # a batch


def test_young_segments_shield_those_behind_them() -> None:
    assert decided(76, [OLD, YOUNG, OLD]) == 1


def test_messages_are_refused_above_the_warning_level() -> None:
    config = BrokerConfig()
    assert decide(DiskState(0.90, 0.1, []), config, NOW_MS, is_manual=False).refusal is None
    refusal = decide(DiskState(0.1, 0.91, []), config, NOW_MS, is_manual=False).refusal
    assert refusal == "the disk is 91 % full, which is above diskSpaceWarningLevelRatio 90"


@pytest.mark.parametrize("hours", ["", "x", ";;", "-4"])
def test_hours_that_are_none_never_come(hours: str) -> None:
    assert not is_hour(hours, NOW_MS)


class Disk(SimulatedFiles):
    """A simulated disk with a usage set by the test."""

    share = 0.1

    def __init__(self) -> None:
        super().__init__(clock_ms=lambda: NOW_MS)

    def usage(self, folder: Path) -> DiskUsage:
        return DiskUsage(round(self.share * 1000), round((1 - self.share) * 1000))


def opened(files: Disk, **changes: Any) -> Bench:
    settings = {
        "delete_when": "99",
        "disk_max_used_space_ratio": 75,
        "disk_space_clean_forcibly_ratio": 85,
        "disk_space_warning_level_ratio": 90,
    }
    return Bench(ROOT, files, **settings | changes).open()


def filled(files: Disk) -> Bench:
    bench = opened(files)
    bench.put_many(200, body=b"x" * 500)
    bench.tick(61_000)
    return bench


def test_epochs_follow_the_log() -> None:
    files = Disk()
    bench = filled(files)
    store = bench.store
    border = 2 * SEGMENT_BYTES
    for epoch, start in ((1, 0), (2, 100), (3, border), (4, store.max_offset_physical - 100)):
        assert store.epochs.begin(epoch, start)
    files.share = 0.86
    bench.tick(61_000)
    low = store.min_offset_physical
    assert border < low < store.max_offset_physical - 100
    assert [each[0] for each in store.epochs.cache.starts] == [3, 4]
    assert store.epochs.cache.at(low) == (3, border, store.max_offset_physical - 100)
    bench.store.close()
    again = opened(files)
    assert again.store.epochs.cache.starts == store.epochs.cache.starts


def test_epochs_are_written_by_the_io_thread_before_files_are_deleted() -> None:
    """A write of the event loop would wait for the disk."""
    files = Disk()
    bench = filled(files)
    store, upkeep = bench.store, bench.executors["store-upkeep"]
    for epoch, start in ((1, 0), (2, 100), (3, 2 * SEGMENT_BYTES)):
        assert store.epochs.begin(epoch, start)
    before = store.epochs.cache.starts
    files.share = 0.86
    bench.now_ms += 61_000
    store.tick(bench.now_ms)
    assert upkeep.step()  # usage of the disk, decision
    assert store.min_offset_physical > 2 * SEGMENT_BYTES
    assert store.epochs.cache.starts == before
    assert store.epochs.begin(4, store.max_offset_physical)
    store.tick(bench.now_ms + 100)
    assert upkeep.step()  # a share of the index's slots
    assert upkeep.step()
    assert [each[0] for each in store.epochs.cache.starts] == [3, 4]
    assert files.exists(ROOT / "commitlog" / f"{0:020d}")
    bench.tick(60_000)
    assert not files.exists(ROOT / "commitlog" / f"{0:020d}")
    bench.store.close()
    again = opened(files)
    assert [each[0] for each in again.store.epochs.cache.starts] == [3, 4]
    again.store.close()


def test_queues_and_index_follow_the_log() -> None:
    files = Disk()
    bench = filled(files)
    before = {folder: len(files.names(ROOT / folder)) for folder in ("commitlog", "index")}
    queue_files = len(files.names(ROOT / "consumequeue" / "TopicTest" / "0"))
    files.share = 0.86
    for _ in range(60):
        bench.tick(1000)
    store = bench.store
    assert store.min_offset_physical >= 5 * SEGMENT_BYTES
    assert len(files.names(ROOT / "commitlog")) < before["commitlog"]
    assert len(files.names(ROOT / "index")) < before["index"]
    assert len(files.names(ROOT / "consumequeue" / "TopicTest" / "0")) < queue_files
    low, high = store.queue_range("TopicTest", 0)
    assert (low > 0, high) == (True, 200)
    found = read_queue(store)
    assert [each.queue_offset for each in found] == list(range(low, 200))
    assert found[0].offset_physical >= store.min_offset_physical
    assert store.put(message(0)).status is PutStatus.PUT_OK
    store.close()
    again = opened(files)
    assert again.store.queue_range("TopicTest", 0) == (low, 201)
    again.store.close()


def test_the_last_segment_stays_whatever_happens() -> None:
    files = Disk()
    bench = opened(files)
    bench.put_many(3)
    files.share = 0.99
    for _ in range(30):
        bench.tick(10_000)
    assert len(read_queue(bench.store)) == 3


def test_above_the_warning_level_messages_are_refused_until_there_is_room() -> None:
    files = Disk()
    bench = opened(files)
    bench.put_many(3)
    files.share = 0.95
    bench.tick(10_000)
    assert bench.store.put(message(3)).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "diskSpaceWarningLevelRatio" in str(bench.store.read_only_reason)
    assert len(read_queue(bench.store)) == 3
    files.share = 0.5
    bench.tick(10_000)
    assert bench.store.put(message(3)).status is PutStatus.PUT_OK
    assert bench.store.stats().commit_log_disk_ratio == 0.5


def test_an_administrator_may_delete_what_is_old_at_once() -> None:
    files = Disk()
    bench = filled(files)
    low = bench.store.min_offset_physical
    bench.store.delete_expired_files()
    bench.tick(100)
    assert bench.store.min_offset_physical == low
    bench.now_ms += 100 * HOUR_MS
    bench.store.delete_expired_files()
    for _ in range(30):
        bench.tick(100)
    assert bench.store.min_offset_physical > low


def test_a_disk_that_cannot_be_looked_at_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: Disk, folder: Path) -> DiskUsage:
        raise OSError("gone")

    bench = opened(Disk())
    monkeypatch.setattr(Disk, "usage", broken)
    bench.tick(10_000)
    assert "Checking the disk of the store failed: gone" in caplog.text
    assert bench.store.writable
