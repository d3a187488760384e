"""The Celery application: `celery -A console worker`, `celery -A console beat`."""

import os
from typing import Any, NoReturn

from celery import Celery, platforms
from celery.apps.beat import Beat
from celery.signals import beat_init, celeryd_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")


class StoppableBeat(Beat):
    """A scheduler that SIGTERM ends at any time, also while the schedule is read.

    Celery's handler saves the schedule before it exits. During the start the handler reads the
    schedule a second time, inside the first transaction; the error replaces the exit, is logged,
    and the process runs on. `Service.start` saves the schedule on its own way out.
    """

    def install_sync_handler(self, service: Any) -> None:
        def stop(*_: object) -> NoReturn:
            service.stop()  # ends the loop, even when a callback swallows the exit
            raise SystemExit

        platforms.signals.update(SIGTERM=stop, SIGINT=stop)


app = Celery("gantry")
app.Beat = app.subclass_with_self(StoppableBeat)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@celeryd_init.connect(weak=False)
def _serve_workers_side_port(**_: Any) -> None:
    from console.side_port import SidePortStep

    app.steps["worker"].add(SidePortStep)


@beat_init.connect(weak=False)
def _serve_schedulers_side_port(**_: Any) -> None:
    from console.side_port import start_side_port

    start_side_port()
