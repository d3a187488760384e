"""The parent process of Spark's Python workers, with the libraries of the tasks loaded once.

Spark forks a worker from this process for each task slot. Without the process, every worker would
load Arrow and pandas again, for a second.
"""

import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pyspark.sql.pandas.serializers  # noqa: F401
from pyspark.daemon import manager

import trace.fact_columns  # noqa: F401

if __name__ == "__main__":
    manager()
