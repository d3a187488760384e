"""Spark on this machine: availability, checked by the program of the Spark jobs, and settings."""

import subprocess
import sys
import threading
import time
from typing import Final

import msgspec
from django.conf import settings

from console.services.jobs.paths import spark_run_dir

CHECK_TIMEOUT_S: Final = 60.0
#: Cache time of the check, seconds. `availability(fresh=True)` bypasses the cache.
KEPT_S: Final = 300.0


class Availability(msgspec.Struct, frozen=True):
    """Output of `python -m spark_jobs check --json`."""

    usable: bool
    java: str | None = None
    reason: str | None = None


_lock = threading.Lock()
_kept: tuple[float, Availability] | None = None


def availability(*, fresh: bool = False) -> Availability:
    """The cached result, or a new check of about one second. For jobs; pages use `last_known`."""
    global _kept  # noqa: PLW0603 -- one answer per process
    with _lock:
        if _kept is None or fresh or time.monotonic() - _kept[0] > KEPT_S:
            _kept = (time.monotonic(), _ask())
        return _kept[1]


def last_known() -> Availability | None:
    """Return the last result without waiting; None before the first one.

    An old result is renewed in a thread; the result of an installation rarely changes.
    """
    kept = _kept
    is_old = kept is None or time.monotonic() - kept[0] > KEPT_S
    if is_old and not _lock.locked():
        threading.Thread(target=availability, name="check-spark", daemon=True).start()
    return kept[1] if kept else None


def _ask() -> Availability:
    command = [sys.executable, "-m", "spark_jobs", "check", "--json"]
    try:
        answer = subprocess.run(
            [*command, "--run-dir", str(spark_run_dir())],
            cwd=settings.BASE_DIR,
            capture_output=True,
            timeout=CHECK_TIMEOUT_S,
            check=False,
        )
        return msgspec.json.decode(answer.stdout, type=Availability)
    except (OSError, subprocess.TimeoutExpired, msgspec.MsgspecError) as error:
        return Availability(usable=False, reason=f"{' '.join(command)} failed: {error}")


def session_arguments() -> list[str]:
    """The options of the Spark session, for jobs and for the service."""
    master = ["--master", settings.SPARK_MASTER] if settings.SPARK_MASTER else []
    memory = f"spark.driver.memory={settings.SPARK_MEMORY_MB}m"
    return ["--run-dir", str(spark_run_dir()), *master, "--conf", memory]
