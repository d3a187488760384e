"""The key index: file bytes, chains, time ranges, new files, rebuilding."""

import struct
from array import array
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from core_broker.store import key_search
from core_broker.store.files import DiskFiles
from core_broker.store.index_items import SLOTS_PER_BLOCK, IndexEntries
from core_broker.store.index_layout import HEADER, ITEM, SLOT
from core_broker.store.key_hash import KeyHasher
from core_broker.store.key_index import KeyIndex, file_name

FILES = DiskFiles()
T0 = 1_700_000_000_000
FOREVER = (0, 1 << 62, 64)


def entries(places: Iterable[tuple[int, int, int]]) -> IndexEntries:
    return array("q", chain.from_iterable(places))


def new_index(folder: Path, slots: int = 16, items: int = 20) -> KeyIndex:
    return KeyIndex(FILES, folder, slots, items)


def find(
    index: KeyIndex, key_hash: int, begin_ms: int, end_ms: int, max_count: int = 64
) -> list[int]:
    search = index.search(key_hash, begin_ms, end_ms, max_count)
    search.run(FILES)
    assert search.flaws == []
    return search.offsets


def flush(index: KeyIndex, *, with_slots: bool = True) -> None:
    flushes = index.take_flushes(with_slots=with_slots)
    for each in flushes:
        each.run()
    index.flushed(flushes, is_done=True)


def reloaded(folder: Path, slots: int = 16, items: int = 20) -> KeyIndex:
    index = new_index(folder, slots, items)
    index.load()
    return index


def test_header_slot_and_item_lie_where_java_looks(tmp_path: Path) -> None:
    key_hash = KeyHasher().key_hash("TopicTest", "OrderID001")
    index = new_index(tmp_path, slots=5_000_000, items=100)
    index.add(entries([(key_hash, 4096, T0), (key_hash, 8192, T0 + 5_900)]))
    flush(index)
    (path,) = tmp_path.iterdir()
    assert path.name == file_name(T0)
    assert len(path.name) == 17
    assert path.stat().st_size == 40 + 4 * 5_000_000 + 20 * 100
    with path.open("rb") as file:
        assert struct.unpack(">qqqqii", file.read(40)) == (T0, T0 + 5_900, 4096, 8192, 1, 3)
        file.seek(40 + 4 * 1_272_886)
        assert file.read(4) == b"\0\0\0\2"
        file.seek(40 + 4 * 5_000_000 + 20)
        assert struct.unpack(">iqii", file.read(20)) == (1231272886, 4096, 0, 0)
        assert struct.unpack(">iqii", file.read(20)) == (1231272886, 8192, 5, 1)
    index.close()


def test_a_chain_gives_the_newest_first_and_only_the_hash_asked_for(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries([(3, 100, T0), (3 + 16, 200, T0), (3, 300, T0), (5, 400, T0)]))
    assert find(index, 3, *FOREVER) == [300, 100]
    assert find(index, 19, *FOREVER) == [200]
    assert find(index, 4, *FOREVER) == []
    assert find(index, 3, 0, 1 << 62, 1) == [300]
    index.close()


def test_the_range_is_of_store_times(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries((3, number, T0 + number * 1000) for number in range(10)))
    assert find(index, 3, T0 + 3000, T0 + 5000, 64) == [5, 4, 3]
    assert find(index, 3, 0, T0 - 1, 64) == []
    assert find(index, 3, T0 + 99_000, T0 + 99_999, 64) == []
    index.close()


def test_full_files_follow_one_another_and_all_are_searched(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    for number in range(50):  # 19 items a file
        index.add(entries([(7, number, T0 + number)]))
    assert len(list(tmp_path.iterdir())) == 3
    assert find(index, 7, *FOREVER) == list(range(49, -1, -1))
    flush(index)
    assert find(index, 7, *FOREVER) == list(range(49, -1, -1))
    index.close()
    again = reloaded(tmp_path)
    assert find(again, 7, *FOREVER) == list(range(49, -1, -1))
    assert (again.end_physical, again.end_timestamp) == (49, T0 + 49)
    again.add(entries([(7, 50, T0 + 50)]))
    assert find(again, 7, 0, 1 << 62, 2) == [50, 49]
    again.close()


def test_times_out_of_range_are_clipped(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries([(1, 1, T0), (1, 2, T0 - 5_000), (1, 3, T0 + 10**13)]))
    flush(index)
    (path,) = tmp_path.iterdir()
    items = path.read_bytes()[40 + 4 * 16 + 20 :]
    assert [ITEM.unpack_from(items, 20 * each)[2] for each in range(3)] == [0, 0, 2**31 - 1]
    index.close()


def test_a_cut_builds_the_slots_anew_from_the_items(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries((number % 3, number * 10, T0 + number * 1000) for number in range(15)))
    flush(index)
    index.close()
    (path,) = tmp_path.iterdir()
    with path.open("r+b") as file:  # slots as a crash may leave them
        file.seek(40)
        file.write(b"\x7f" * 4 * 16)
    index = reloaded(tmp_path)
    index.cut_physical(100)
    assert (index.end_physical, index.end_timestamp) == (90, T0 + 9000)
    assert find(index, 0, *FOREVER) == [90, 60, 30, 0]
    index.add(entries([(0, 100, T0 + 10_000)]))
    flush(index)
    index.close()
    again = reloaded(tmp_path)
    assert find(again, 0, *FOREVER) == [100, 90, 60, 30, 0]
    again.close()


def test_a_cut_before_a_file_removes_it(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries((7, number, T0) for number in range(50)))
    flush(index)
    index.cut_physical(20)
    assert index.end_physical == 19
    assert len(list(tmp_path.iterdir())) == 2
    index.cut_physical(0)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_and_those_behind_it_are_removed(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries((7, number, T0) for number in range(50)))
    flush(index)
    index.close()
    paths = sorted(tmp_path.iterdir())
    paths[1].write_bytes(b"rubbish")
    again = reloaded(tmp_path)
    assert sorted(tmp_path.iterdir()) == paths[:1]
    assert again.end_physical == 18
    again.close()


def test_a_search_follows_a_bounded_number_of_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = new_index(tmp_path, items=2000)
    index.add(entries((3 if number else 19, number, T0) for number in range(1000)))
    assert find(index, 19, *FOREVER) == [0]
    monkeypatch.setattr(key_search, "CHAIN_ITEMS_MAX", 900)
    assert find(index, 19, *FOREVER) == []
    index.close()


def test_files_whose_messages_are_gone_can_be_removed(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries((7, number, T0) for number in range(50)))
    flush(index)
    assert index.forget_before(18) == []
    assert len(index.forget_before(1000)) == 2  # never the newest
    index.close()


def test_a_share_writes_the_slots_that_belong_to_its_header(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries([(1, 100, T0), (2, 200, T0)]))
    share = index.take_slot_share(1)
    assert share is not None
    index.add(entries([(1, 300, T0), (17, 400, T0), (3, 500, T0)]))
    share.run()
    (path,) = tmp_path.iterdir()
    header_and_slots = struct.unpack_from(">qqqqii16i", path.read_bytes())
    assert header_and_slots[4:] == (2, 3, 0, 1, 2, *[0] * 13)
    index.share_written(share, is_done=True)
    flush(index)
    header_and_slots = struct.unpack_from(">qqqqii16i", path.read_bytes())
    assert header_and_slots[4:] == (3, 6, 0, 4, 2, 5, *[0] * 12)
    assert index.take_slot_share(1) is None
    index.close()


def test_the_items_of_a_share_are_in_the_file_before_its_header(tmp_path: Path) -> None:
    """After a kill the header counts the items, and the log is not read again for them."""
    index = new_index(tmp_path)
    index.add(entries([(1, 100, T0), (2, 200, T0)]))
    share = index.take_slot_share(1)
    assert share is not None
    share.run()
    after_kill = reloaded(tmp_path)
    assert (find(after_kill, 1, *FOREVER), find(after_kill, 2, *FOREVER)) == ([100], [200])
    after_kill.close()
    index.close()


class _OrderedFile:
    """Passes writes on, and notes what was written and synced, by place in the file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.done: list[str] = []

    def pwrite(self, data: Any, at: int) -> None:
        self.done.append("header" if at == 0 else "slots" if at < HEADER.size + 64 else "items")
        self._file.pwrite(data, at)

    def sync(self) -> None:
        self.done.append("sync")
        self._file.sync()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("count", [19, 30])
def test_the_slots_of_a_full_file_are_synced_before_its_header(tmp_path: Path, count: int) -> None:
    """A file that is full by its header is not rebuilt after a power cut."""
    index = new_index(tmp_path)
    index.add(entries((number, 1000 + number, T0) for number in range(count)))
    [full, *_] = index.take_flushes(with_slots=False)
    full.file.file = watched = _OrderedFile(full.file.file)
    full.run()
    assert watched.done == ["slots", "sync", "header", "sync"]
    index.close()


def test_shares_go_through_the_changed_blocks_in_turn(tmp_path: Path) -> None:
    index = new_index(tmp_path, slots=10 * SLOTS_PER_BLOCK, items=1000)

    def change(*blocks: int) -> None:
        index.add(entries((block * SLOTS_PER_BLOCK, 100, T0) for block in blocks))

    def written(*, is_done: bool = True) -> list[int]:
        share = index.take_slot_share(5)
        if share is None:
            return []
        share.run()
        index.share_written(share, is_done=is_done)
        return share.blocks

    change(0, 1, 4, 8, 9)
    assert written() == [0, 1]
    change(0)  # waits until the others are written
    assert written() == [4, 8]
    assert written() == [0, 9]
    assert written() == []
    change(3)
    assert written(is_done=False) == [3]
    assert written() == [3]
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()[HEADER.size :]
    firsts = [SLOT.unpack_from(data, block * SLOTS_PER_BLOCK * SLOT.size)[0] for block in range(10)]
    assert firsts == [6, 2, 0, 7, 3, 0, 0, 0, 4, 5]
    index.close()


def test_a_full_file_has_no_shares(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries((number, 1000 + number, T0) for number in range(19)))
    assert index.take_slot_share(1) is None
    flush(index, with_slots=False)
    (path,) = tmp_path.iterdir()
    assert SLOT.unpack_from(path.read_bytes(), HEADER.size) == (17,)
    index.close()


def test_a_flush_without_slots_writes_those_of_a_full_file_only(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries([(1, 100, T0), (2, 200, T0)]))
    flush(index, with_slots=False)
    (path,) = tmp_path.iterdir()
    header_and_slots = struct.unpack_from(">qqqqii16i", path.read_bytes())
    assert header_and_slots[4:] == (2, 3, *[0] * 16)
    index.add(entries((number, 1000 + number, T0) for number in range(17)))
    flush(index, with_slots=False)
    header_and_slots = struct.unpack_from(">qqqqii16i", path.read_bytes())
    assert header_and_slots[5] == 20
    assert 0 not in header_and_slots[6:]
    index.close()


def test_no_file_is_removed_under_a_flush(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add(entries((7, number, T0) for number in range(50)))
    flushes = index.take_flushes()
    assert index.forget_before(1000) == []
    index.flushed(flushes, is_done=False)
    assert index.forget_before(1000) == []  # still to be written
    flush(index)
    assert len(index.forget_before(1000)) == 2
    index.close()
