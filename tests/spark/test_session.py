"""The processes of a Spark session: Java and the Python workers."""

import os
from collections.abc import Iterator

import pyarrow
import pytest
from pyspark.sql import SparkSession

from spark_jobs.spark.session import MEMORY_SETTINGS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_java_and_workers_have_the_memory_settings(spark: SparkSession) -> None:
    names = sorted(MEMORY_SETTINGS)

    def environment(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for _ in batches:
            values = [os.environ.get(name) for name in names]
            yield pyarrow.RecordBatch.from_pydict({"name": names, "value": values})

    rows = spark.range(1).mapInArrow(environment, "name string, value string").collect()
    assert {row.name: row.value for row in rows} == MEMORY_SETTINGS
    java = spark.sparkContext._jvm
    assert java is not None
    assert {name: java.System.getenv(name) for name in names} == MEMORY_SETTINGS
