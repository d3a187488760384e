"""`manage.py debug_bundle CLUSTER FILE`: write the debug bundle of a cluster, without a worker."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.gateway import UnknownCluster, gateway
from console.services.bundles.bundle import write


class Command(BaseCommand):
    help = "Write a ZIP of versions, settings, findings, alarms, samples and logs, without secrets."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", metavar="CLUSTER")
        parser.add_argument("file", metavar="FILE", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            cluster = gateway.cluster(options["cluster"])
        except UnknownCluster as error:
            raise CommandError(str(error.detail)) from error
        try:
            with options["file"].open("w+b") as output:
                *_states, written = write(cluster, output)
        except OSError as error:
            raise CommandError(f"{options['file']}: {error}") from error
        finally:
            gateway.close()
        for name, reason in written.failed.items():
            self.stderr.write(f"{name}: {reason}")
        self.stdout.write(f"{options['file']}: {len(written.files)} files")
