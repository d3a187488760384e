"""Repair: queues and index are rebuilt with equal contents from the log alone."""

import shutil
from collections.abc import Callable
from pathlib import Path

from core_broker.mqstore.cli import main
from core_broker.mqstore.folder import StoreFolder
from core_broker.mqstore.repairing import repair
from core_broker.mqstore.report import Report
from tests.support.stores import Bench, read_queue
from tests.unit.mqstore.conftest import sizes_of

OPTIONS = ("--max-hash-slot-num", "64", "--max-index-num", "50")
Check = Callable[[], Report]


def derived(root: Path) -> dict[str, bytes]:
    """Return the contents of all files of queues and index."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for part in ("consumequeue", "index")
        for path in sorted((root / part).rglob("*"))
        if path.is_file()
    }


def test_rebuilt_files_equal_the_originals(root: Path, check: Check) -> None:
    before = derived(root)
    shutil.rmtree(root / "index")
    (root / "consumequeue/TopicTest/0/00000000000000000000").write_bytes(b"\xff" * 400)
    shutil.rmtree(root / "consumequeue/Other")
    assert check().problem_count > 0
    done = repair(StoreFolder(root), sizes_of(root))
    assert (done.records, done.queues, done.index_files, done.damage) == (53, 5, 4, [])
    assert derived(root) == before
    assert check().is_clean


def test_a_broker_starts_on_a_repaired_folder(root: Path, check: Check) -> None:
    shutil.rmtree(root / "consumequeue")
    repair(StoreFolder(root), sizes_of(root))
    bench = Bench(root).open()
    assert len(read_queue(bench.store)) == 40
    bench.put_many(5)
    assert len(read_queue(bench.store)) == 45
    bench.store.close()
    assert check().is_clean
    assert not (root / "trash").exists()


def test_replaced_files_are_kept(root: Path) -> None:
    before = derived(root)
    done = repair(StoreFolder(root), sizes_of(root))
    assert Path(done.kept_in).parent == root / "trash"
    assert derived(Path(done.kept_in)) == before
    assert not (root / "repair.tmp").exists()


def test_lmq_queues_stay(root: Path) -> None:
    lmq = root / "consumequeue/%LMQ%mine/0"
    lmq.mkdir(parents=True)
    (lmq / "00000000000000000000").write_bytes(b"\1" * 400)
    repair(StoreFolder(root), sizes_of(root))
    assert (lmq / "00000000000000000000").read_bytes() == b"\1" * 400


def test_damage_of_the_log_is_reported_and_the_log_is_unchanged(root: Path) -> None:
    path = root / "commitlog/00000000000000000000"
    data = bytearray(path.read_bytes())
    data[90] ^= 1
    path.write_bytes(data)
    done = repair(StoreFolder(root), sizes_of(root))
    assert done.records == 52
    assert done.damage == [f"{path.relative_to(root)} at 0: its body does not match the checksum"]
    assert path.read_bytes() == data


def test_the_folder_is_unchanged_without_yes_or_while_a_broker_runs(root: Path) -> None:
    before = derived(root)
    assert main(["repair", str(root), *OPTIONS]) == 0
    assert derived(root) == before
    assert not (root / "trash").exists()
    bench = Bench(root).open()
    try:
        assert main(["repair", str(root), "--yes", *OPTIONS]) == 2
    finally:
        bench.store.close()
    assert main(["repair", str(root), "--yes", "--output", "json", *OPTIONS]) == 0


def test_the_log_of_a_running_broker_is_read_but_not_repaired(tmp_path: Path) -> None:
    """A copied store folder, and its commit log in use by the broker of the original."""
    log = tmp_path / "log"
    bench = Bench(tmp_path / "store", store_path_commit_log=str(log)).open()
    bench.put_many(20)
    bench.store.close()
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "store", copy)
    before = derived(copy)
    bench = Bench(tmp_path / "store", store_path_commit_log=str(log)).open()
    options = ["--store-path-commit-log", str(log), *OPTIONS]
    try:
        assert main(["ls", str(copy), *options]) == 0
        assert main(["verify", str(copy), *options]) == 0
        assert main(["repair", str(copy), "--yes", *options]) == 2
        assert derived(copy) == before
        bench.put_many(5)
    finally:
        bench.store.close()
    assert main(["repair", str(copy), "--yes", *options]) == 0
    assert main(["verify", str(copy), *options]) == 0
