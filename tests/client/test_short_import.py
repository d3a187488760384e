"""`from gantry import Producer`: the names, and what the import loads."""

import subprocess
import sys

import gantry
import gantry.sync
from core_broker import client
from core_broker.client import sync
from tests.support.cluster import ROOT

#: Packages of the console and of Spark, the broker's parts, and what only a rare function needs.
NOT_LOADED = {
    *("celery", "console", "django", "numpy", "pandas", "pyarrow", "pyspark", "redis", "rich"),
    *("cryptography", "click", "spark_jobs", "trace.codec", "namesrv", "ruamel", "http", "email"),
    *("core_broker.broker", "core_broker.store", "core_broker.processors", "core_broker.kernel"),
}


def test_the_names_are_those_of_the_client_library() -> None:
    assert gantry.__all__ == client.__all__
    assert all(getattr(gantry, name) is getattr(client, name) for name in client.__all__)
    assert gantry.sync.__all__ == sync.__all__
    assert all(getattr(gantry.sync, name) is getattr(sync, name) for name in sync.__all__)


def test_the_client_alone_loads_neither_console_nor_spark_nor_broker() -> None:
    program = "import sys; from gantry import Message, Producer; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert "core_broker.client.producer" in loaded
    assert sorted(NOT_LOADED & set(loaded)) == []
