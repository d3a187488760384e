"""The schedule in the database, with a side port for probes."""

from django_celery_beat.schedulers import DatabaseScheduler

from console.side_port import PULSE


class Scheduler(DatabaseScheduler):
    """Reports each turn of the loop to the side port."""

    def tick(self, *args: object, **options: object) -> float:
        interval: float = super().tick(*args, **options)
        PULSE.turned()
        return interval
