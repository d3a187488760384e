"""The index of a DLedger commit log on the disk: power cuts, deletion with the log."""

from functools import partial
from pathlib import Path

import pytest

from core_broker.dledger.entry_store import EntryStore
from core_broker.dledger.model import NOTHING
from core_broker.errors import StoreCorrupt
from core_broker.store import layout
from core_broker.store.entry_log import UNIT_BYTES, EntryLog
from core_broker.store.files import DiskUsage
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import NOW_MS, SEGMENT_BYTES, Bench

ROOT = Path("/store")
INDEX = ROOT / "dledger-n0" / "index"
#: Entries of an index file, so that the entries of a test need several files.
ENTRIES_PER_FILE = 32


class Disk(SimulatedFiles):
    """A simulated disk with a usage set by the test."""

    share = 0.1

    def usage(self, folder: Path) -> DiskUsage:
        return DiskUsage(round(self.share * 1000), round((1 - self.share) * 1000))


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    small = partial(EntryLog, file_bytes=ENTRIES_PER_FILE * UNIT_BYTES)
    monkeypatch.setattr(layout, "EntryLog", small)


def opened(files: SimulatedFiles) -> Bench:
    settings = {
        "enable_d_leger_commit_log": True,
        "d_leger_self_id": "n0",
        "delete_when": "99",
        "disk_max_used_space_ratio": 75,
        "disk_space_clean_forcibly_ratio": 85,
    }
    return Bench(ROOT, files, **settings).open()


def entries_of(bench: Bench) -> EntryLog:
    entries = bench.store.entries
    assert entries is not None
    return entries


def check_index(bench: Bench) -> None:
    """Every entry of the log is found, where the data files have it."""
    entries, log = entries_of(bench), bench.store._log
    for index in range(entries.begin_index, entries.end_index + 1):
        place = entries.place(index)
        assert log.framing.flaw(log.read(place.position, 52), 0, place.position) == "", index
        assert place.number == index


@pytest.mark.parametrize("seed", range(12))
def test_a_power_cut_loses_no_unit_of_a_kept_entry(seed: int) -> None:
    """Units of segments that the next start does not read again are on the disk."""
    files = SimulatedFiles(seed, clock_ms=lambda: NOW_MS)
    bench = opened(files)
    bench.put_many(200)
    bench.tick(61_000)
    bench.put_many(100, first=200)
    assert bench.store.max_offset_physical > 4 * SEGMENT_BYTES
    bench.run_io()
    files.power_cut()
    again = opened(files)
    assert entries_of(again).end_index >= 199
    check_index(again)
    again.store.close()


@pytest.mark.parametrize("seed", range(12))
def test_a_power_cut_after_the_stop_loses_no_unit(seed: int) -> None:
    files = SimulatedFiles(seed, clock_ms=lambda: NOW_MS)
    bench = opened(files)
    bench.put_many(200)
    bench.store.close()
    files.power_cut()
    again = opened(files)
    assert entries_of(again).end_index == 199
    check_index(again)
    again.store.close()


def test_a_late_checkpoint_lets_the_start_read_more_than_three_segments() -> None:
    """Units behind the checkpoint are written again, wherever the checkpoint lies."""
    files = SimulatedFiles(clock_ms=lambda: NOW_MS)
    bench = opened(files)
    bench.put_many(100)
    bench.tick(61_000)
    first_behind = entries_of(bench).end_index + 1
    bench.put_many(300, first=100)
    assert bench.store.max_offset_physical > 5 * SEGMENT_BYTES
    files.kill()
    at = first_behind * UNIT_BYTES
    path = INDEX / f"{at - at % (ENTRIES_PER_FILE * UNIT_BYTES):020d}"
    file = files.open(path)
    file.pwrite(bytes(UNIT_BYTES), at % (ENTRIES_PER_FILE * UNIT_BYTES))
    again = opened(files)
    check_index(again)
    again.store.close()


def test_files_whose_sync_failed_are_synced_later() -> None:
    bench = opened(SimulatedFiles(clock_ms=lambda: NOW_MS))
    bench.put_many(ENTRIES_PER_FILE + 1)
    entries = entries_of(bench)
    paths = entries.take_dirty()
    assert [each.name for each in sorted(paths)] == [f"{0:020d}", f"{32 * UNIT_BYTES:020d}"]
    assert entries.take_dirty() == set()
    entries.mark_dirty(paths)
    bench.tick(61_000)
    assert entries.take_dirty() == set()
    bench.store.close()


def expired(files: Disk) -> Bench:
    """Return a store that has deleted its oldest segments, but no file of the index yet."""
    bench = opened(files)
    bench.put_many(300)
    bench.tick(61_000)
    files.share = 0.86
    bench.store.tick(bench.now_ms + 61_000)
    bench.executors["store-upkeep"].step()
    assert entries_of(bench).begin_index > 2 * ENTRIES_PER_FILE
    return bench


def test_index_files_of_deleted_entries_are_deleted() -> None:
    files = Disk(clock_ms=lambda: NOW_MS)
    bench = expired(files)
    entries = entries_of(bench)
    begin = entries.begin_index
    assert files.exists(INDEX / f"{0:020d}")
    for _ in range(60):
        bench.tick(1000)
    first = begin // ENTRIES_PER_FILE * ENTRIES_PER_FILE * UNIT_BYTES
    assert files.names(INDEX)[0] == f"{first:020d}"
    check_index(bench)
    for read in (entries.place, lambda index: entries.places(index, 4)):
        with pytest.raises(StoreCorrupt, match="lacks entry 0"):
            read(0)
    assert files.names(INDEX)[0] == f"{first:020d}", "no read makes a file"
    assert entries.end_position(0) == bench.store.min_offset_physical
    assert EntryStore(bench.store).term_at(0) == NOTHING
    assert EntryStore(bench.store).term_at(begin) == 0
    bench.put_many(10, first=300)
    bench.store.close()
    again = opened(files)
    assert (entries_of(again).begin_index, entries_of(again).end_index) == (begin, 309)
    check_index(again)
    again.store.close()


def test_a_start_deletes_the_index_files_that_a_crash_has_left() -> None:
    files = Disk(clock_ms=lambda: NOW_MS)
    bench = expired(files)
    low = bench.store.min_offset_physical
    for name in files.names(ROOT / "dledger-n0" / "data"):
        if int(name) < low:
            files.remove(ROOT / "dledger-n0" / "data" / name)
    files.kill()
    files.share = 0.1
    again = opened(files)
    first = entries_of(again).begin_index // ENTRIES_PER_FILE * ENTRIES_PER_FILE * UNIT_BYTES
    assert files.names(INDEX)[0] == f"{first:020d}" > f"{0:020d}"
    check_index(again)
    again.store.close()
