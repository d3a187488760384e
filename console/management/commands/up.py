"""`manage.py up` in the list of `manage.py help`; console.launcher does the work."""

import sys

from django.core.management.base import BaseCommand

from console.launcher.main import main


class Command(BaseCommand):
    help = "Start name server, broker, console and background jobs; Ctrl-C stops all."
    requires_system_checks: list[str] = []

    def run_from_argv(self, argv: list[str]) -> None:
        sys.exit(main(argv[2:], demo=False))
