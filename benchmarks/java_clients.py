"""Load by the Java client in its typical form: 64 threads with a shared producer, one consumer.

The programs resemble RocketMQ's own benchmark, whose classes are in no package registry: Producer
with 64 threads and bodies of 128 bytes, Consumer with 20 threads. The first seconds are the JVM's
warm-up and do not count.
"""

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final

from tests.compat import installing

SOURCE: Final = Path(__file__).parent / "java_client" / "Load.java"
PRODUCER_THREADS: Final = 64
CONSUMER_THREADS: Final = 20
BODY_BYTES: Final = 128
#: Measured share of a run, at its end; the rest is warm-up.
MEASURED_SHARE: Final = 0.5
JVM: Final = ("-server", "-Xms512m", "-Xmx512m")
EXIT_SECONDS_MAX: Final = 60


def produce(namesrv_addr: str, topic: str, seconds: int) -> int:
    """Messages per second sent by the Java producer."""
    rates = _run(namesrv_addr, "produce", topic, PRODUCER_THREADS, seconds)
    return int(median(rates[-int(seconds * MEASURED_SHARE) :]))


def consume(namesrv_addr: str, topic: str, seconds: int) -> int:
    """Messages per second consumed by the Java consumer from a backlog.

    Seconds before the first queues are assigned and after the end of the backlog do not count.
    """
    rates = [
        rate for rate in _run(namesrv_addr, "consume", topic, CONSUMER_THREADS, seconds) if rate
    ]
    return int(median(rates)) if rates else 0


def _run(namesrv_addr: str, what: str, topic: str, threads: int, seconds: int) -> list[int]:
    with tempfile.TemporaryDirectory() as folder:
        arguments = (what, namesrv_addr, topic, threads, BODY_BYTES, seconds)
        done = subprocess.run(
            [
                "java",
                *JVM,
                f"-Duser.home={folder}",
                "-cp",
                _classpath(),
                "Load",
                *map(str, arguments),
            ],
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds + EXIT_SECONDS_MAX,
        )
    lines = [line.split() for line in done.stdout.splitlines()]
    if done.returncode or ["failed", "0"] not in lines:
        raise SystemExit(f"The Java client broke:\n{(done.stdout + done.stderr)[-2000:]}")
    return [int(line[1]) for line in lines if line[:1] == ["per_second"]]


@cache
def _classpath() -> str:
    jars = installing.java_classpath(installing.JAVA5_VERSION)

    def compile_load(folder: Path) -> None:
        installing.need("javac")
        installing.run(["javac", "-nowarn", "-cp", jars, "-d", str(folder), str(SOURCE)])

    classes = installing.installed("java-load", SOURCE.read_text(), compile_load)
    return os.pathsep.join((str(classes), jars))
