"""The console itself as a Django app: shared templates, management commands, translations."""

from importlib import import_module

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"

    def ready(self) -> None:
        # Tasks called from a page must find the Celery application with its broker.
        import_module("console.celery")
