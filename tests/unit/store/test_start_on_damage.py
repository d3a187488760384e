"""With any content of the folder, a start serves, or refuses and names the file."""

import random
import shutil
from functools import partial
from pathlib import Path

import pytest

from core_broker.errors import StoreCorrupt
from core_broker.store import MessageStore
from tests.support.damage import damaged
from tests.support.stores import Bench, warmed

ROUNDS = 60
QUEUES = (("TopicTest", 0), ("Other", 3))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cleanly stopped store."""
    root = tmp_path_factory.mktemp("filled") / "store"
    bench = Bench(root).open()
    bench.put_many(40)
    bench.put_many(10, topic="Other", queue_id=3, body=b"x" * 900)
    bench.store.close()
    return root


def serve(root: Path) -> None:
    """Start, read all messages, put messages, stop."""
    bench = Bench(root)
    refusal = ""
    try:
        bench.open()
    except (StoreCorrupt, OSError) as error:  # the broker prints either as one sentence
        refusal = str(error)
    if refusal:
        assert str(root) in refusal
        return
    read_all(bench.store)
    bench.put_many(3)
    bench.tick(60_000)
    bench.store.close()


def read_all(store: MessageStore) -> None:
    """Pull as a consumer does; damage must never block the progress."""
    for topic, queue_id in QUEUES:
        offset, end = store.queue_range(topic, queue_id)
        while offset < end:
            result = warmed(store, partial(store.get, topic, queue_id, offset, 32))
            assert result.next_offset > offset
            offset = result.next_offset


def data_files(root: Path) -> list[Path]:
    return sorted(each for each in root.rglob("*") if each.is_file() and each.name != "lock")


@pytest.mark.parametrize("is_killed", [False, True])
def test_flipped_bits(filled: Path, tmp_path: Path, is_killed: bool) -> None:
    generator = random.Random(1)
    for number in range(ROUNDS):
        root = tmp_path / f"{number}"
        shutil.copytree(filled, root)
        path = generator.choice(data_files(root))
        data = bytearray(path.read_bytes())
        data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        path.write_bytes(data)
        if is_killed:
            (root / "abort").touch()
        serve(root)


@pytest.mark.parametrize("is_killed", [False, True])
def test_files_cut_off_scrambled_or_gone(filled: Path, tmp_path: Path, is_killed: bool) -> None:
    generator = random.Random(2)
    for number in range(ROUNDS):
        root = tmp_path / f"{number}"
        shutil.copytree(filled, root)
        for path in generator.sample(data_files(root), generator.randint(1, 3)):
            if generator.random() < 0.2:
                path.unlink()
            else:
                path.write_bytes(damaged(path.read_bytes(), generator))
        if is_killed:
            (root / "abort").touch()
        serve(root)


@pytest.mark.parametrize("kind", ["folder", "broken link", "link to a folder", "odd name"])
def test_other_things_in_the_place_of_files(filled: Path, tmp_path: Path, kind: str) -> None:
    for number in range(len(data_files(filled))):
        root = tmp_path / f"{number}"
        shutil.copytree(filled, root)
        path = data_files(root)[number]
        if kind == "odd name":
            path.rename(path.with_name("odd"))
        else:
            path.unlink()
        if kind == "folder":
            path.mkdir()
        elif kind == "broken link":
            path.symlink_to("nowhere")
        elif kind == "link to a folder":
            path.symlink_to(root)
        serve(root)


def test_odd_things_beside_the_files_do_no_harm(filled: Path, tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(filled, root)
    for folder in ("commitlog", "consumequeue", "consumequeue/TopicTest/0", "index", "."):
        (root / folder / "no-number").write_bytes(b"odd")
        (root / folder / "no folder of anything").mkdir()
        (root / folder / "broken").symlink_to("nowhere")
    bench = Bench(root).open()
    assert bench.store.queue_range("TopicTest", 0) == (0, 40)
    bench.store.close()


@pytest.mark.parametrize("start", [16384 * 2**48, 16384 * 2**50, 10**20 - 1])
def test_names_beyond_all_measure(filled: Path, tmp_path: Path, start: int) -> None:
    for number, folder in enumerate(("commitlog", "consumequeue/TopicTest/0")):
        root = tmp_path / f"{number}"
        shutil.copytree(filled, root)
        path = min((root / folder).iterdir())
        for each in (root / folder).iterdir():
            if each != path:
                each.unlink()
        path.rename(path.with_name(f"{start:020d}"))
        serve(root)
