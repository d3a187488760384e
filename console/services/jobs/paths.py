"""Where jobs keep what outlives them, below GANTRY_HOME."""

from pathlib import Path

from django.conf import settings


def lake_of(cluster: str) -> Path:
    """Where the traces of a cluster are collected. Names of clusters are safe as folder names."""
    return Path(settings.GANTRY_HOME) / "lake" / cluster


def spark_run_dir() -> Path:
    """Event logs of Spark, and whatever else its jobs keep between runs."""
    return Path(settings.GANTRY_HOME) / "spark"


def job_log(job_id: int) -> Path:
    """What the program of a job wrote to its standard error."""
    return Path(settings.GANTRY_HOME) / "logs" / "jobs" / f"{job_id}.log"


def job_files(job_id: int) -> Path:
    """The folder of the files a job makes for people; see `files.py`. It may not be there."""
    return Path(settings.GANTRY_HOME) / "jobs" / str(job_id)
