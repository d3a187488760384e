"""One Spark session per test worker, shared by all tests of the folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.spark.session import SHORT_RUN, start_session

TEST_SETTINGS = {
    **SHORT_RUN,
    "spark.driver.memory": "768m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    run_dir: Path = tmp_path_factory.mktemp("spark")
    session = start_session(
        "gantry-tests", run_dir=run_dir, master="local[2]", settings=TEST_SETTINGS
    )
    yield session
    session.stop()
