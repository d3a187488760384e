"""The data source `commitlog`: intact, truncated, damaged and growing store folders."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from core_broker.config import BrokerConfig
from core_broker.errors import ClientError
from core_broker.message.model import MessageInner
from core_broker.store import MessageStore
from spark_jobs.sources import log_scan
from spark_jobs.sources.commitlog import (
    LOG_COLUMNS,
    OPTION_NAMES,
    CommitLogDataSource,
    LogOptions,
    read_log_options,
    read_log_slice,
)
from spark_jobs.sources.log_scan import SEARCH_BYTES, LogSlice, log_slices, scan
from spark_jobs.sources.queues import ReadError

SEED = 3
COUNT = 600
BEGIN_MS = 1_790_000_000_000
SEGMENT_BYTES = 32 * 1024
NARROW = ("topic", "queue_offset", "physical_offset", "body")


def message(number: int) -> MessageInner:
    luck = random.Random(number)
    return MessageInner(
        f"topic-{number % 3}",
        0,
        luck.randbytes(luck.randrange(400)),
        {"KEYS": f"k{number}", "UNIQ_KEY": f"id-{number}"},
        born_host=("2001:db8::1", 5) if number % 20 == 7 else ("10.0.0.1", 5),
        store_host=("127.0.0.1", 10911),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store folder with COUNT messages, a second apart, in several files."""
    folder = tmp_path_factory.mktemp("log")
    now_ms = BEGIN_MS

    async def write() -> None:
        nonlocal now_ms
        config = BrokerConfig(
            store_path_root_dir=str(folder),
            mapped_file_size_commit_log=SEGMENT_BYTES,
            mapped_file_size_consume_queue=20 * 1000,
            max_hash_slot_num=100,
            max_index_num=1000,
        )
        made = MessageStore(config, clock_ms=lambda: now_ms)
        made.load()
        made.start(asyncio.get_running_loop())
        for number in range(COUNT):
            now_ms = BEGIN_MS + number * 1000
            made.put(message(number))
            made.write_staged()
        made.close()

    asyncio.run(write())
    return folder


def rows(
    folder: Path, bytes_max: int = 10**9, columns: tuple[str, ...] = NARROW, **more: Any
) -> list[dict[str, Any]]:
    options = LogOptions(str(folder), **more)
    return [
        row
        for part in log_slices(folder, bytes_max)
        for batch in read_log_slice(options, columns, part)
        for row in batch.to_pylist()
    ]


def copy_of(store: Path, folder: Path) -> list[Path]:
    """The files of a copy, for tests with damage."""
    (folder / "commitlog").mkdir()
    for path in sorted((store / "commitlog").iterdir()):
        (folder / "commitlog" / path.name).write_bytes(path.read_bytes())
    return sorted((folder / "commitlog").iterdir())


@pytest.mark.parametrize("bytes_max", [10**9, 20_000, 777])
def test_every_message_once_for_any_slice_size(store: Path, bytes_max: int) -> None:
    found = rows(store, bytes_max)
    assert [row["body"] for row in found] == [message(number).body for number in range(COUNT)]
    assert [row["topic"] for row in found] == [message(number).topic for number in range(COUNT)]
    assert len(log_slices(store, 10**9)) > 3


class ReadBytes(bytes):
    """Bytes that note the end of every part read."""

    ends: list[int]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            self.ends.append(key.stop)
        return super().__getitem__(key)


def test_a_slice_of_zeros_is_searched_to_its_own_end(store: Path) -> None:
    """The last file is filled with zeros in advance, up to 1 GiB, which many slices share."""
    path = sorted((store / "commitlog").iterdir())[0]
    used = path.read_bytes()
    log = ReadBytes(used + bytes(5 * SEARCH_BYTES))
    log.ends = []
    begin = len(used) + SEARCH_BYTES
    part = LogSlice(str(path), int(path.name), begin, begin + SEARCH_BYTES)
    assert list(scan(part, log, check_crc=True)) == []  # type: ignore[arg-type]
    assert part.end <= max(log.ends) < part.end + 8


def test_topic_time_and_columns(store: Path) -> None:
    found = rows(
        store,
        columns=tuple(LOG_COLUMNS),
        topics=frozenset({"topic-1"}),
        starting_ms=BEGIN_MS + 10_000,
        ending_ms=BEGIN_MS + 20_000,
        broker_name="backup",
    )
    assert [row["msg_id"] for row in found] == ["id-10", "id-13", "id-16", "id-19"]
    assert list(found[0]) == list(LOG_COLUMNS)
    assert (found[0]["keys"], found[0]["broker_name"]) == (["k10"], "backup")
    assert found[0]["damaged_bytes"] == 0
    assert rows(store / "commitlog", topics=frozenset({"nothing"})) == []


@pytest.mark.parametrize("search_bytes", [SEARCH_BYTES, 61])
def test_damage_is_skipped_and_counted(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search_bytes: int
) -> None:
    monkeypatch.setattr(log_scan, "SEARCH_BYTES", search_bytes)
    whole = rows(store)
    files = copy_of(store, tmp_path)
    # A changed body, an impossible length, and a torn tail.
    at = {row["physical_offset"]: number for number, row in enumerate(whole)}
    first = [p for p in at if 0 < p < SEGMENT_BYTES // 2]
    content = bytearray(files[0].read_bytes())
    hurt = {first[2], first[6]}
    content[first[2] + 95] ^= 0xFF
    content[first[6] : first[6] + 4] = b"\xff\xff\xff\xff"
    files[0].write_bytes(content)
    last = whole[-1]["physical_offset"]
    files[-1].write_bytes(files[-1].read_bytes()[: last - int(files[-1].name) + 60])
    hurt.add(last)

    columns = (*NARROW, "damaged_bytes")
    for bytes_max in (10**9, 5000):
        found = rows(tmp_path, bytes_max, columns, damage="rows")
        sound = [row for row in found if not row["damaged_bytes"]]
        wanted = [row for row in whole if row["physical_offset"] not in hurt]
        assert [row["physical_offset"] for row in sound] == [
            row["physical_offset"] for row in wanted
        ]
        damage = {r["physical_offset"]: r["damaged_bytes"] for r in found if r["damaged_bytes"]}
        assert damage.keys() == hurt
        assert damage[last] == 60
        assert damage[first[2]] == first[3] - first[2]
    assert len(rows(tmp_path)) == COUNT - 3
    assert len(rows(tmp_path, check_crc=False)) == COUNT - 2
    with pytest.raises(ReadError, match=r"bytes at position \d+ .* are damaged"):
        rows(tmp_path, damage="fail")


def test_any_bytes_are_scanned_without_an_error(store: Path, tmp_path: Path) -> None:
    luck = random.Random(SEED)
    original = sorted((store / "commitlog").iterdir())[0].read_bytes()
    log = tmp_path / ("0" * 20)
    for _ in range(60):
        content = bytearray(original)
        for _ in range(luck.randrange(1, 40)):
            begin = luck.randrange(len(content))
            content[begin : begin + luck.choice((1, 4, 100))] = luck.randbytes(luck.choice((1, 4)))
        log.write_bytes(content[: luck.randrange(len(content))])
        assert len(rows(tmp_path, luck.choice((10**9, 3000)), tuple(LOG_COLUMNS))) <= COUNT
    log.write_bytes(b"")
    assert rows(tmp_path) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "needs the option path"),
        ({"path": "p", "topics": "t"}, "Did you mean topic"),
        ({"path": "p", "columns": "size"}, "there are topic"),
        ({"path": "p", "damage": "mend"}, "damage must be skip, rows, fail"),
        ({"path": "p", "damage": "rows", "columns": "body"}, "needs damaged_bytes"),
        ({"path": "p", "maxBytesPerPartition": "0"}, "must be a number"),
        ({"path": "p", "checkCrc": "maybe"}, "must be true or false"),
        ({"path": "p", "startingTimestamp": "soon"}, "must be milliseconds"),
    ],
)
def test_a_wrong_option_is_named(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(ClientError, match=said):
        read_log_options(wrong)


def test_a_folder_without_a_commit_log(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="holds no commit log"):
        log_slices(tmp_path, 100)


def test_the_documents_name_every_option_and_column() -> None:
    text = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    assert [name for name in (*OPTION_NAMES, *LOG_COLUMNS) if f"`{name}`" not in text] == []


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_store_folder_as_a_frame(spark: SparkSession, store: Path) -> None:
    spark.dataSource.register(CommitLogDataSource)
    reader = spark.read.format("commitlog").option("path", str(store))
    frame = reader.option("maxBytesPerPartition", SEGMENT_BYTES // 2).load()
    assert frame.count() == COUNT
    counted = {row.topic: row["count"] for row in frame.groupBy("topic").count().collect()}
    assert counted["topic-1"] == sum(message(n).topic == "topic-1" for n in range(COUNT))
    with pytest.raises(Exception, match="holds no commit log"):
        spark.read.format("commitlog").option("path", str(store / "config")).load().count()
