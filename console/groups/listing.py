"""The list of groups: its columns and filters, shared by page and API."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.gateway.groups import GroupRow
from console.tables import Column, Columns

COLUMNS: Columns[GroupRow] = Columns(
    Column("name", _("Group"), lambda row: row.name),
    Column(
        "lag",
        _("Lag"),
        lambda row: row.lag,
        numeric=True,
        hint=_("Messages that are stored but not yet consumed, retries among them"),
    ),
    Column(
        "retry_lag",
        _("Of these retries"),
        lambda row: row.progress.retry_lag if row.progress else None,
        numeric=True,
    ),
    Column(
        "rate",
        _("Consumes /s"),
        lambda row: row.rate,
        numeric=True,
        hint=_("Average of the last minute"),
    ),
    Column(
        "behind_since_ms",
        _("Consumed up to"),
        lambda row: row.progress.behind_since_ms if row.progress else None,
        hint=_("When the last consumed message of the queue furthest behind was stored"),
    ),
    Column(
        "topics", _("Topics"), lambda row: len(row.progress.topics) if row.progress else None, True
    ),
)
CLIENT_COLUMN: Column[GroupRow] = Column(
    "clients", _("Clients"), numeric=True, hint=_("Consumers that are connected now")
)
SHOWN: Columns[GroupRow] = Columns(*COLUMNS, CLIENT_COLUMN)

FILTERS: dict[str, Any] = {
    "behind": pgettext_lazy("groups", "behind"),
    "idle": pgettext_lazy("groups", "never consumed"),
    "system": pgettext_lazy("groups", "system"),
}


@dataclass(frozen=True, slots=True)
class FilterChip:
    """One choice of the filter, with how many groups it would show."""

    name: str
    label: Any
    count: int


def passing(rows: Iterable[GroupRow], chosen: str) -> list[GroupRow]:
    """The rows of a filter; without one all that are not the system's own."""
    if chosen == "behind":
        return [row for row in rows if row.lag]
    if chosen == "idle":
        return [row for row in rows if row.progress is None and not row.system]
    if chosen == "system":
        return [row for row in rows if row.system]
    return [row for row in rows if not row.system]


def chips(rows: Iterable[GroupRow]) -> list[FilterChip]:
    found = list(rows)
    return [FilterChip(name, label, len(passing(found, name))) for name, label in FILTERS.items()]
