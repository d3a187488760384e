"""Tasks of the worker: Celery imports this module by its name."""

from console.resources.left_labels import forget_on_schedule

__all__ = ["forget_on_schedule"]
