"""The list of groups as a file."""

from django.utils.translation import gettext_lazy as _

from console.areas.groups import listing
from console.areas.groups.serializers import GroupNumbersSerializer, GroupRowSerializer, lines_body
from console.frame.tables import TableQuery
from console.gateway import Cluster
from console.gateway.groups.listing import group_rows
from console.services.exports.tables import Asked, Found, Table, numbered_parts


def found(cluster: Cluster, asked: Asked) -> Found:
    answer = cluster.ask(group_rows)
    query = TableQuery(listing.COLUMNS, asked.search, asked.ordering, 1)
    rows = query.matching(answer.value)
    numbers, lines = listing.numbered(cluster, rows, query.ordered_by, asked.chosen)
    ordered = query.ordered(listing.passing(lines, asked.chosen))
    return Found(
        len(ordered),
        numbered_parts(numbers, ordered, lines_body),
        answer.failures,
        numbers.left_out if asked.chosen else 0,
    )


TABLE = Table(
    name="groups",
    title=_("Groups"),
    page="groups:list",
    columns=(*GroupRowSerializer().fields, *GroupNumbersSerializer().fields),
    found=found,
    listing=listing.COLUMNS,
    choice="show",
    choices={name: label for name, (label, _passes) in listing.FILTERS.items()},
)
