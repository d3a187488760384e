"""Starts the sampler with a Celery worker, and stops it with the worker.

Celery imports the `tasks` of all apps in workers; this module has no task. A task every ten seconds
would wait behind jobs, which may run for hours.
"""

from typing import Any

from celery.signals import worker_ready, worker_shutdown
from django.conf import settings

from console.services.history.sampler import Sampler

_samplers: list[Sampler] = []


@worker_ready.connect(weak=False)
def _start(**_: Any) -> None:
    if settings.HISTORY_DAYS and not _samplers:
        sampler = Sampler()
        _samplers.append(sampler)
        sampler.start()


@worker_shutdown.connect(weak=False)
def _stop(**_: Any) -> None:
    while _samplers:
        _samplers.pop().stop()
