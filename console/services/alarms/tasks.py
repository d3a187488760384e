"""Starts the dispatch of notices with a Celery worker, and stops it with the worker.

Celery imports the `tasks` of all apps in workers; this module has no task, because tasks wait
behind jobs.
"""

from typing import Any

from celery.signals import worker_ready, worker_shutdown
from django.conf import settings

from console.services.alarms.dispatch import Dispatcher

_running: list[Dispatcher] = []


@worker_ready.connect(weak=False)
def _start(**_: Any) -> None:
    if settings.EVALUATION_SECONDS and not _running:
        dispatcher = Dispatcher()
        _running.append(dispatcher)
        dispatcher.start()


@worker_shutdown.connect(weak=False)
def _stop(**_: Any) -> None:
    while _running:
        _running.pop().stop()
