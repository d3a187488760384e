"""List export of the groups with dead letters. `message_export.py` exports the messages."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from console.areas.deadletters.api import dealt_with, group_row
from console.areas.deadletters.serializers import CauseSerializer, DeadLetterGroupSerializer
from console.gateway import Cluster
from console.gateway.dead_letters import summary as questions
from console.gateway.dead_letters.causes import GROUPS_ASKED_MAX, newest_causes
from console.gateway.dead_letters.summary import DeadLetterGroup
from console.gateway.groups.metrics import client_counts
from console.services.exports.tables import Asked, Found, Part, Table, batched


def found(cluster: Cluster, _asked: Asked) -> Found:
    answer = cluster.ask(questions.groups_with_dead_letters)
    return Found(len(answer.value), _parts(cluster, answer.value), answer.failures)


def _parts(cluster: Cluster, held: Sequence[DeadLetterGroup]) -> Iterator[Part]:
    """Rows with causes for all groups; the page limits causes to the first groups."""
    for part in batched(held, GROUPS_ASKED_MAX):
        names = tuple(each.group for each in part)
        clients = cluster.ask(client_counts, names)
        read = tuple((each.group, each.newest_ms) for each in part)
        reasons = cluster.ask(newest_causes, read).value
        handled = dealt_with(cluster, part)
        rows = [
            group_row(each, handled[each.group], clients.value, reasons.get(each.group))
            for each in part
        ]
        yield Part([_flat(row) for row in rows], clients.failures)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    why = row.pop("why") or {}
    return {**row, **{f"why_{name}": value for name, value in why.items()}}


TABLE = Table(
    name="dead-letters",
    title=_("Dead letters"),
    page="deadletters:list",
    columns=(
        *(name for name in list(DeadLetterGroupSerializer().fields) if name != "why"),
        *(f"why_{name}" for name in list(CauseSerializer().fields)),
    ),
    found=found,
)
