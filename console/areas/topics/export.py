"""Export of the topic list."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.areas.topics import listing
from console.areas.topics.listing import TopicLine
from console.areas.topics.serializers import NUMBERS, TopicRowSerializer, lines_body
from console.frame.tables import TableQuery
from console.gateway import Cluster
from console.gateway.topics.listing import topic_rows
from console.resources import label_filter
from console.resources.labels import with_labels
from console.resources.models import Kind
from console.services.exports.tables import Asked, Found, Table, numbered_parts


def list_topics(cluster: Cluster, request: Asked) -> Found:
    answer = cluster.ask(topic_rows)
    query = TableQuery(listing.COLUMNS, request.search, request.ordering, 1)
    own = listing.shown(answer.value, request.chosen)
    rows = label_filter.matching(query, cluster.name, Kind.TOPIC, own)
    numbers, lines = listing.numbered(cluster, rows, query.ordered_by)
    ordered = query.ordered(lines)

    def shape(part: list[TopicLine]) -> list[dict[str, Any]]:
        return with_labels(cluster.name, Kind.TOPIC, lines_body(part))

    return Found(len(ordered), numbered_parts(numbers, ordered, shape), answer.failures)


TABLE = Table(
    name="topics",
    title=_("Topics"),
    page="topics:list",
    columns=(*TopicRowSerializer().fields, "labels", *NUMBERS),
    found=list_topics,
    listing=listing.COLUMNS,
    choice="type",
    choices={**listing.KINDS, listing.ALL: pgettext_lazy("message type", "all types")},
)
