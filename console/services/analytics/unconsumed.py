"""Never-consumed messages of the lake, compared with the cluster.

The lake has trace records only: no record of a delivery to consumers without traces, and none of a
message outside of the filter. While the broker stores the message, the committed offset of the
group and the filters of the connected consumers show that the message is not pending.
"""

from collections.abc import Sequence

from console.gateway import Cluster, GatewayError
from console.gateway.messages.deliveries import Delivery, deliveries_of
from console.services.analytics.aggregates import SlowDelivery

#: Maximum number of compared messages; the rest stays in the list.
COMPARED_MAX = 50
#: States of messages that are not pending.
SETTLED = frozenset({Delivery.CONSUMED, Delivery.FILTERED})


def unconsumed(cluster: Cluster, rows: Sequence[SlowDelivery]) -> list[SlowDelivery]:
    """Return the rows without consumed and filtered messages.

    Rows stay when the cluster does not answer, or stores the message no more.
    """
    known = [row for row in rows[:COMPARED_MAX] if row.topic and row.consumer_group and row.msg_id]
    wanted = tuple((str(row.topic), row.msg_id, str(row.consumer_group)) for row in known)
    try:
        states = cluster.ask(deliveries_of, wanted).value if wanted else ()
    except GatewayError:
        return list(rows)
    settled = {key for key, state in zip(wanted, states, strict=True) if state in SETTLED}
    return [row for row in rows if (row.topic, row.msg_id, row.consumer_group) not in settled]
