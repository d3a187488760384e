"""Paths of job data below GANTRY_HOME."""

from pathlib import Path

from django.conf import settings


def lake_of(cluster: str) -> Path:
    """The trace lake of a cluster. Cluster names are safe as folder names."""
    return Path(settings.GANTRY_HOME) / "lake" / cluster


def spark_run_dir() -> Path:
    """Spark event logs and other data kept between runs."""
    return Path(settings.GANTRY_HOME) / "spark"


def spark_socket() -> Path:
    """The socket of the Spark service, see `spark_service.py`."""
    return Path(settings.GANTRY_HOME) / "run" / "spark.sock"


def job_credentials(cluster: str) -> Path:
    """The keys of the running Spark job of a cluster; absent without a job."""
    return Path(settings.GANTRY_HOME) / "run" / f"credentials-{cluster}.yml"


def spark_service_log() -> Path:
    """Output of the Spark service; every start of the service empties the file."""
    return Path(settings.GANTRY_HOME) / "logs" / "spark-service.log"


def job_log(job_id: int) -> Path:
    """Standard error of the job's program."""
    return Path(settings.GANTRY_HOME) / "logs" / "jobs" / f"{job_id}.log"


def job_files(job_id: int) -> Path:
    """The folder of downloadable files, see `files.py`; absent without files."""
    return Path(settings.GANTRY_HOME) / "jobs" / str(job_id)
