"""Two brokers never share a store: locks on root folder, commit log and epochs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core_broker.errors import StoreLocked
from core_broker.store.files import DiskFiles, Files
from core_broker.store.layout import store_paths
from core_broker.store.simulated_files import SimulatedFiles
from core_broker.store.store_lock import is_locked
from core_broker.store.store_locks import StoreLocks
from tests.support.source_tree import ROOT
from tests.support.stores import Bench, message, read_queue, store_config

LOG = {"store_path_commit_log": "{base}/log"}
ENTRIES = {
    "enable_d_leger_commit_log": True,
    "d_leger_peers": "n0-127.0.0.1:1",
    "store_path_d_ledger_commit_log": "{base}/log",
}
EPOCHS = {"store_path_epoch_file": "{base}/epochs"}


@pytest.fixture(params=["disk", "simulated"])
def files(request: pytest.FixtureRequest) -> Files:
    return DiskFiles() if request.param == "disk" else SimulatedFiles(1)


def locked(files: Files, base: Path, name: str, settings: dict[str, Any]) -> StoreLocks:
    """Take the locks of a broker with its own root folder, as the store does."""
    texts = {
        key: value.format(base=base) if isinstance(value, str) else value
        for key, value in settings.items()
    }
    config = store_config(base / name, **texts)
    files.make_dir(base / name)
    locks = StoreLocks(files, store_paths(config))
    try:
        locks.lock_parts(config)
    except BaseException:
        locks.release()
        raise
    return locks


@pytest.mark.parametrize(
    ("shared", "path", "settings"),
    [
        (LOG, "log", "storePathCommitLog or storePathRootDir"),
        (ENTRIES, "log", "storePathDLedgerCommitLog or storePathRootDir"),
        (EPOCHS, "epochs.lock", "storePathEpochFile"),
    ],
)
def test_a_shared_part_is_refused_until_its_broker_stops(
    files: Files, tmp_path: Path, shared: dict[str, Any], path: str, settings: str
) -> None:
    first = locked(files, tmp_path, "a", shared)
    for _ in range(2):
        with pytest.raises(StoreLocked) as refused:
            locked(files, tmp_path, "b", shared)
        assert str(refused.value) == (
            f"{tmp_path / path} is in use by another broker; stop it or set another {settings}."
        )
    locked(files, tmp_path, "b", {}).release()  # the refusal left no lock on the root folder
    first.release()
    locked(files, tmp_path, "b", shared).release()


def test_the_log_below_another_root_folder_is_refused(files: Files, tmp_path: Path) -> None:
    inside = {"store_path_commit_log": "{base}/a/commitlog"}
    first = locked(files, tmp_path, "a", {})
    with pytest.raises(StoreLocked, match="set another storePathCommitLog or storePathRootDir"):
        locked(files, tmp_path, "b", inside)
    first.release()
    second = locked(files, tmp_path, "b", inside)
    with pytest.raises(StoreLocked, match="set another storePathCommitLog or storePathRootDir"):
        locked(files, tmp_path, "a", {})
    second.release()


def test_the_log_may_be_the_root_folder(files: Files, tmp_path: Path) -> None:
    own = {"store_path_commit_log": "{base}/a"}
    first = locked(files, tmp_path, "a", own)
    with pytest.raises(StoreLocked):
        locked(files, tmp_path, "b", own)
    first.release()
    locked(files, tmp_path, "a", own).release()


def test_a_link_to_the_log_is_the_log(tmp_path: Path) -> None:
    files = DiskFiles()
    first = locked(files, tmp_path, "a", LOG)
    (tmp_path / "link").symlink_to(tmp_path / "log", target_is_directory=True)
    with pytest.raises(StoreLocked):
        locked(files, tmp_path, "b", {"store_path_commit_log": "{base}/link"})
    first.release()


BIND = """
mount --make-rprivate /
mkdir "$1/b" "$1/b/root" "$1/log-elsewhere"
mount --bind "$1/log" "$1/log-elsewhere"
mount --bind "$1/a" "$1/b/root"
exec "$2" -c "$3" "$1"
"""
BOUND = """
import sys
from pathlib import Path
from core_broker.errors import StoreLocked
from core_broker.store.files import DiskFiles
from tests.unit.store.test_store_locks import locked
base, files = Path(sys.argv[1]), DiskFiles()
first = locked(files, base, "a", {"store_path_commit_log": "{base}/log"})
try:
    locked(files, base, "b", {"store_path_commit_log": "{base}/log-elsewhere"})
except StoreLocked as error:
    print(error)
first.release()
locked(files, base, "a", {"store_path_commit_log": "{base}/b/root"}).release()
print("the log may be the root folder below another path")
"""


def test_a_bind_mount_of_the_log_is_the_log(tmp_path: Path) -> None:
    for name in ("log", "a"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-euc", BIND, "sh", tmp_path, sys.executable, BOUND],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare failed" in done.stderr:
        pytest.skip("no mount namespaces for this user")
    assert done.returncode == 0, done.stderr
    refused, own = done.stdout.splitlines()
    assert refused.startswith(f"{tmp_path / 'log-elsewhere'} is in use by another broker")
    assert own == "the log may be the root folder below another path"


def test_a_lock_is_seen_without_taking_it(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / "lock", tmp_path / "log"]
    assert not any(map(is_locked, paths))
    first = locked(DiskFiles(), tmp_path, "a", LOG)
    assert all(map(is_locked, paths))
    first.release()
    assert not any(map(is_locked, paths))
    locked(DiskFiles(), tmp_path, "b", LOG).release()


def test_another_process_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    bench = Bench(tmp_path / "a", store_path_commit_log=str(log)).open()
    bench.put(message(0))
    program = (
        "import sys\n"
        "from core_broker.config import BrokerConfig\n"
        "from core_broker.store import MessageStore\n"
        "MessageStore(BrokerConfig(store_path_root_dir=sys.argv[1],\n"
        "    store_path_commit_log=sys.argv[2])).load()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "b"), str(log)]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode != 0
    assert f"{log} is in use by another broker" in second.stderr
    # Java refuses a commit log with files of another size.
    assert [path.name for path in log.iterdir() if not path.name.isdecimal()] == []
    bench.put(message(1))
    bench.tick()
    assert len(read_queue(bench.store)) == 2
    bench.store.close()
    bench = Bench(tmp_path / "a", store_path_commit_log=str(log)).open()
    assert len(read_queue(bench.store)) == 2
    bench.store.close()
