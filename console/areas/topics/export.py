"""Export of the topic list."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.areas.topics import listing
from console.areas.topics.serializers import NUMBERS, TopicRowSerializer, lines_body
from console.frame.tables import TableQuery
from console.gateway import Cluster
from console.gateway.topics.listing import topic_rows
from console.services.exports.tables import Asked, Found, Table, numbered_parts


def list_topics(cluster: Cluster, request: Asked) -> Found:
    answer = cluster.ask(topic_rows)
    query = TableQuery(listing.COLUMNS, request.search, request.ordering, 1)
    rows = query.matching(listing.shown(answer.value, request.chosen))
    numbers, lines = listing.numbered(cluster, rows, query.ordered_by)
    ordered = query.ordered(lines)
    return Found(len(ordered), numbered_parts(numbers, ordered, lines_body), answer.failures)


TABLE = Table(
    name="topics",
    title=_("Topics"),
    page="topics:list",
    columns=(*TopicRowSerializer().fields, *NUMBERS),
    found=list_topics,
    listing=listing.COLUMNS,
    choice="type",
    choices={**listing.KINDS, listing.ALL: pgettext_lazy("message type", "all types")},
)
