"""Where the history of a cluster is stored: in files, or in PostgreSQL (CONSOLE_HISTORY_STORE)."""

from pathlib import Path

from django.conf import settings

from console.services.history.files import FilePlace, path_of
from console.services.history.postgres import PostgresPlace
from console.services.history.store import Place


def place_of(home: Path, cluster: str) -> Place:
    """Return the place of a cluster's history."""
    if settings.HISTORY_IN_DATABASE:
        return PostgresPlace(cluster)
    return FilePlace(path_of(home, cluster))
