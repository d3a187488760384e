"""The console itself as a Django app: shared templates, management commands, translations."""

from importlib import import_module

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"

    def ready(self) -> None:
        # Load the Celery application, so that tasks called from pages use the configured broker.
        import_module("console.celery")
        from console.web.reserve import prepare_space

        prepare_space()
