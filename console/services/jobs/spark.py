"""Whether Spark can run on this machine; asked of the program that would run it."""

import subprocess
import sys
import threading
import time
from typing import Final

import msgspec
from django.conf import settings

from console.services.jobs.paths import spark_run_dir

CHECK_TIMEOUT_S: Final = 60.0
#: Java is seldom installed while somebody waits for it; `availability(fresh=True)` asks again.
KEPT_S: Final = 300.0


class Availability(msgspec.Struct, frozen=True):
    """What `python -m spark_jobs check --json` says."""

    usable: bool
    java: str | None = None
    reason: str | None = None


_lock = threading.Lock()
_kept: tuple[float, Availability] | None = None


def availability(*, fresh: bool = False) -> Availability:
    """The answer of the last minutes, or a new one; it takes about a second."""
    global _kept  # noqa: PLW0603 -- one answer per process
    with _lock:
        if _kept is None or fresh or time.monotonic() - _kept[0] > KEPT_S:
            _kept = (time.monotonic(), _ask())
        return _kept[1]


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
