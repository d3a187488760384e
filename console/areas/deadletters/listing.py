"""Columns of the list of groups with dead letters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.frame.tables import Column, Columns
from console.gateway.dead_letters.causes import DeadLetterCause, newest_ms
from console.gateway.dead_letters.summary import DeadLetterGroup

#: Order of the list without a parameter.
ORDERING_DEFAULT = "-count"


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One row of the list of groups; None marks an unknown value, or one not requested yet."""

    held: DeadLetterGroup
    handled: int | None = None
    clients: int | None = None
    why: DeadLetterCause | None = None

    @property
    def name(self) -> str:
        return self.held.group

    @property
    def open(self) -> int | None:
        if self.held.count is None or self.handled is None:
            return None
        return max(0, self.held.count - self.handled)


COLUMNS: Columns[GroupLine] = Columns(
    Column("name", _("Group"), lambda line: line.name),
    Column("count", _("Dead letters"), lambda line: line.held.count, numeric=True),
    Column(
        "open",
        pgettext_lazy("dead letters", "Open"),
        lambda line: line.open,
        numeric=True,
        hint=_("Neither resent nor discarded from this console"),
    ),
    Column(
        "last_hour",
        _("Last hour"),
        lambda line: line.held.last_hour,
        numeric=True,
        hint=_("Dead letters of the last hour"),
    ),
    Column("cause", _("Cause")),
    Column("newest", _("Newest"), lambda line: line.held.newest_ms),
    Column("oldest", _("Oldest"), lambda line: line.held.oldest_ms),
    Column("clients", _("Consumers"), numeric=True),
    Column(
        "perm",
        _("Permission"),
        hint=_("The console reads dead letters without regard to the topic permission"),
    ),
)


def filled(
    lines: Sequence[GroupLine],
    handled: Mapping[str, int],
    clients: Mapping[str, int],
    causes: Mapping[str, DeadLetterCause | None],
) -> list[GroupLine]:
    """The rows of one page with their values; `newest` and `cause` are of the same dead letter."""
    return [
        replace(
            line,
            held=replace(
                line.held, newest_ms=newest_ms(line.held.newest_ms, causes.get(line.name))
            ),
            handled=handled[line.name],
            clients=clients.get(line.name),
            why=causes.get(line.name),
        )
        for line in lines
    ]
