"""Whether a worker takes jobs: a ping over the task queue, cached for all viewers of a process."""

import threading
import time
from typing import Final

from celery import current_app
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError
from redis import RedisError

from console.project_files import COMMAND

#: Time for the first worker to answer, seconds.
PING_TIMEOUT_S: Final = 1.0
#: Cache time of the answer, seconds.
KEPT_S: Final = 3.0

_lock = threading.Lock()
_kept: tuple[float, bool] | None = None


def worker_problem() -> str | None:
    """Return why queued jobs do not start; None when a worker answers. Call with Redis up only."""
    global _kept  # noqa: PLW0603 -- one answer per process
    with _lock:
        if _kept is None or time.monotonic() - _kept[0] > KEPT_S:
            answers = _answers()
            _kept = (time.monotonic(), answers)
        if _kept[1]:
            return None
    return _(
        "No worker answers. “{command} up” starts one; elsewhere: celery -A console worker."
    ).format(command=COMMAND)


def _answers() -> bool:
    try:
        return bool(current_app.control.inspect(timeout=PING_TIMEOUT_S, limit=1).ping())
    except (OperationalError, RedisError, OSError):
        return False
