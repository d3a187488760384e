"""Export of the group list."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from console.areas.groups import listing
from console.areas.groups.listing import GroupLine
from console.areas.groups.serializers import GroupNumbersSerializer, GroupRowSerializer, lines_body
from console.frame.tables import TableQuery
from console.gateway import Cluster
from console.gateway.groups.listing import group_rows
from console.resources import label_filter
from console.resources.labels import with_labels
from console.resources.models import Kind
from console.services.exports.tables import Asked, Found, Table, numbered_parts


def list_groups(cluster: Cluster, request: Asked) -> Found:
    answer = cluster.ask(group_rows)
    query = TableQuery(listing.COLUMNS, request.search, request.ordering, 1)
    rows = label_filter.matching(query, cluster.name, Kind.GROUP, answer.value)
    numbers, lines = listing.numbered(cluster, rows, query.ordered_by, request.chosen)
    ordered = query.ordered(listing.passing(lines, request.chosen))

    def shape(part: list[GroupLine]) -> list[dict[str, Any]]:
        return with_labels(cluster.name, Kind.GROUP, lines_body(part))

    return Found(
        len(ordered),
        numbered_parts(numbers, ordered, shape),
        answer.failures,
        numbers.left_out if request.chosen else 0,
    )


TABLE = Table(
    name="groups",
    title=_("Groups"),
    page="groups:list",
    columns=(*GroupRowSerializer().fields, "labels", *GroupNumbersSerializer().fields),
    found=list_groups,
    listing=listing.COLUMNS,
    choice="show",
    choices={name: label for name, (label, _passes) in listing.FILTERS.items()},
)
