"""Export of the group list."""

from django.utils.translation import gettext_lazy as _

from console.areas.groups import listing
from console.areas.groups.serializers import GroupNumbersSerializer, GroupRowSerializer, lines_body
from console.frame.tables import TableQuery
from console.gateway import Cluster
from console.gateway.groups.listing import group_rows
from console.services.exports.tables import Asked, Found, Table, numbered_parts


def list_groups(cluster: Cluster, request: Asked) -> Found:
    answer = cluster.ask(group_rows)
    query = TableQuery(listing.COLUMNS, request.search, request.ordering, 1)
    rows = query.matching(answer.value)
    numbers, lines = listing.numbered(cluster, rows, query.ordered_by, request.chosen)
    ordered = query.ordered(listing.passing(lines, request.chosen))
    return Found(
        len(ordered),
        numbered_parts(numbers, ordered, lines_body),
        answer.failures,
        numbers.left_out if request.chosen else 0,
    )


TABLE = Table(
    name="groups",
    title=_("Groups"),
    page="groups:list",
    columns=(*GroupRowSerializer().fields, *GroupNumbersSerializer().fields),
    found=list_groups,
    listing=listing.COLUMNS,
    choice="show",
    choices={name: label for name, (label, _passes) in listing.FILTERS.items()},
)
