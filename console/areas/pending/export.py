"""Export of the half message list."""

from django.utils.translation import gettext_lazy as _

from console.areas.pending import listing
from console.areas.pending.serializers import HalfMessageSerializer
from console.frame.tables import TableQuery
from console.gateway import Cluster
from console.gateway.pending.half import half_messages
from console.services.exports.tables import PART_ROWS, Asked, Found, Part, Table, batched


def list_halves(cluster: Cluster, request: Asked) -> Found:
    answer = cluster.ask(half_messages)
    query = TableQuery(listing.HALF_COLUMNS, request.search, request.ordering, 1)
    rows = query.ordered(listing.passing(answer.value.rows, request.search))
    parts = (
        Part(list(HalfMessageSerializer(part, many=True).data)) for part in batched(rows, PART_ROWS)
    )
    return Found(len(rows), parts, answer.failures, answer.value.left_out)


TABLE = Table(
    name="half-messages",
    title=_("Half messages"),
    page="pending:half",
    columns=tuple(HalfMessageSerializer().fields),
    found=list_halves,
    listing=listing.HALF_COLUMNS,
)
