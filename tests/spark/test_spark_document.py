"""The programs of docs/spark.md, against a real broker; the streams are killed."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession, functions

from spark_jobs.sources.rocketmq import RocketMQDataSource
from tests.spark.traffic import new_topic, pull_all, send
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
MESSAGES, ROWS_PER_BATCH = 1200, 60
WAIT_SECONDS_MAX = 300.0
SESSION, READ, TO_PARQUET, FROM_PARQUET, WRITE, COPY, STORE_FOLDER = range(7)


def programs(replacements: dict[str, str]) -> list[str]:
    """The Python blocks of the document, with texts replaced by the values of a test."""
    document = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", document, re.DOTALL | re.MULTILINE)
    for old, new in replacements.items():
        assert any(old in block for block in blocks), old
        blocks = [block.replace(old, new) for block in blocks]
    assert len(blocks) == STORE_FOLDER + 1
    return blocks


def test_the_programs_run(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark, "F": functions}
    spark.dataSource.register(RocketMQDataSource)
    with Cluster(tmp_path) as cluster:
        send(cluster, "orders", [b"%d" % number for number in range(300)], queues=2)
        new_topic(cluster, "payments", queues=3)
        blocks = programs(
            {
                "127.0.0.1:9876": cluster.namesrv_addr,
                '"var/': f'"{tmp_path}/var/',
                "/backup/store": str(cluster.store_folder),
                "2026-11-05T13:00:00Z": "2020-01-01T00:00:00Z",
            }
        )
        for block in blocks[READ:]:
            exec(block, names)
        assert names["orders"].count() == 200  # queue 0 starts at offset 100
        assert names["stored"].count() == 300
        payments = pull_all(cluster, "payments", queues=3)
        assert sorted((it.tags, it.keys[0]) for it in payments) == [
            ("created", "c-7"),
            ("created", "c-9"),
            ("paid", "c-7"),
        ]
        assert [it.tags for it in payments if it.keys == ["c-7"]] == ["created", "paid"]
        assert len({it.queue_id for it in payments if it.keys == ["c-7"]}) == 1
        assert len(pull_all(cluster, "orders-copy", queues=4)) == 300
        assert names["backup"].count() == 300


class Driver:
    """The streaming program in a separate driver process."""

    def __init__(self, program: str, folder: Path) -> None:
        environment = {**os.environ, "SPARK_MASTER": "local[2]", "PYTHONPATH": str(ROOT)}
        self._log = folder / "driver.log"
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def kill_when(self, reached: Callable[[], bool]) -> None:
        """kill -9 of Python and Java, as soon as a condition holds."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        try:
            while not reached():
                assert self._process.poll() is None, self.output
                assert time.monotonic() < deadline, self.output
                time.sleep(0.001)
        finally:
            self.kill()

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Wait for the end of the program."""
        try:
            assert self._process.wait(WAIT_SECONDS_MAX) == 0, self.output
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]


@pytest.mark.crash
def test_each_message_is_once_in_parquet_after_kills(
    spark: SparkSession, shared_cluster: Cluster, tmp_path: Path
) -> None:
    """Kills: before a micro-batch, with uncommitted files, and after the sink's commit."""
    bodies = [b"%d" % number for number in range(MESSAGES)]
    send(shared_cluster, "parquet-kills", bodies, queues=2)
    blocks = programs(
        {
            "127.0.0.1:9876": shared_cluster.namesrv_addr,
            '"orders")\n': '"parquet-kills")\n',
            "500_000": str(ROWS_PER_BATCH),
        }
    )
    program = blocks[SESSION] + blocks[TO_PARQUET]
    out, checkpoint = tmp_path / "var/orders", tmp_path / "var/orders-checkpoint"

    def files() -> int:
        return len(list(out.glob("day=*/*.parquet")))

    def has_uncommitted_files() -> bool:
        committed = len(list((out / "_spark_metadata").glob("[0-9]*")))
        # The sink writes two files for each micro-batch: one per queue.
        return committed >= 5 and files() > 2 * committed

    (tmp_path / "var").mkdir()
    for reached in (
        (checkpoint / "offsets" / "2").exists,
        has_uncommitted_files,
        (out / "_spark_metadata" / "11").exists,
    ):
        Driver(program, tmp_path).kill_when(reached)
    assert not (checkpoint / "commits" / str(MESSAGES // ROWS_PER_BATCH - 1)).exists()
    Driver(program, tmp_path).end()
    stored = spark.read.parquet(str(out)).select("queue_id", "queue_offset", "body").collect()
    rows = sorted((row.queue_id, row.queue_offset, bytes(row.body)) for row in stored)
    assert rows == [
        (queue, offset, b"%d" % (2 * offset + queue))
        for queue in range(2)
        for offset in range(MESSAGES // 2)
    ]


@pytest.mark.crash
def test_a_killed_copy_loses_no_message(shared_cluster: Cluster, tmp_path: Path) -> None:
    """Kill: in a micro-batch of which the brokers have stored a part."""
    bodies = [b"%d" % number for number in range(MESSAGES)]
    send(shared_cluster, "copy-kills", bodies, queues=2)
    new_topic(shared_cluster, "copy-of-kills", queues=2)
    blocks = programs(
        {
            "127.0.0.1:9876": shared_cluster.namesrv_addr,
            '"orders")\n': f'"copy-kills").option("maxRowsPerBatch", {MESSAGES // 3})\n',
            '"orders-copy")\n': '"copy-of-kills").option("maxRequestBytes", 2000)\n',
        }
    )
    program = blocks[SESSION] + blocks[COPY]
    commits = tmp_path / "var/copy-checkpoint/commits"

    def is_inside_a_batch() -> bool:
        return (commits / "0").exists() and stored() > MESSAGES // 3

    def stored() -> int:
        return len(pull_all(shared_cluster, "copy-of-kills", queues=2))

    (tmp_path / "var").mkdir()
    Driver(program, tmp_path).kill_when(is_inside_a_batch)
    assert not (commits / "2").exists()
    Driver(program, tmp_path).end()
    copies = [it.body for it in pull_all(shared_cluster, "copy-of-kills", queues=2)]
    assert set(copies) == set(bodies)
    assert len(copies) <= MESSAGES + MESSAGES // 3  # one micro-batch is repeated
