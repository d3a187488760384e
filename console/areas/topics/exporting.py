"""The list of topics as a file."""

from django.utils.translation import gettext_lazy as _

from console.areas.topics import listing
from console.areas.topics.serializers import NUMBERS, TopicRowSerializer, lines_body
from console.frame.tables import TableQuery
from console.gateway import Cluster
from console.gateway.topics.listing import topic_rows
from console.services.exports.tables import Asked, Found, Table, numbered_parts


def found(cluster: Cluster, asked: Asked) -> Found:
    answer = cluster.ask(topic_rows)
    query = TableQuery(listing.COLUMNS, asked.search, asked.ordering, 1)
    rows = query.matching(listing.of_kind(answer.value, asked.chosen))
    numbers, lines = listing.numbered(cluster, rows, query.ordered_by)
    ordered = query.ordered(lines)
    return Found(len(ordered), numbered_parts(numbers, ordered, lines_body), answer.failures)


TABLE = Table(
    name="topics",
    title=_("Topics"),
    page="topics:list",
    columns=(*TopicRowSerializer().fields, *NUMBERS),
    found=found,
    listing=listing.COLUMNS,
    choice="type",
    choices=listing.KINDS,
)
