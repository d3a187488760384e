"""The selection of a view from a cluster, with the consume rates of the shown edges."""

from console.areas.topology.selection import Selection, View, select, with_rates
from console.gateway import Answer, Cluster, ClusterUnreachable, merge_failures
from console.gateway.topology.live import topology
from console.gateway.topology.measures import RATED_EDGES_MAX, consume_rates
from console.gateway.topology.model import Topology, name_of


def ask_selection(cluster: Cluster, view: View) -> tuple[Answer[Topology], Selection]:
    """Return the answer of the cluster and the shown part. Raises GatewayError."""
    answer = cluster.ask(topology)
    selection = select(answer.value, view)
    ends = [
        edge.ends
        for edge in selection.edges
        if edge.kind == "consumption" and not edge.stale and not edge.down and edge.is_single
    ]
    pairs = tuple((name_of(topic), name_of(group)) for topic, group in ends[:RATED_EDGES_MAX])
    if not pairs:
        return answer, selection
    try:
        rates = cluster.ask(consume_rates, pairs)
    except ClusterUnreachable:
        return answer, selection  # rates stay unknown
    by_keys = {end: rates.value.get(pair) for end, pair in zip(ends, pairs, strict=False)}
    failures = merge_failures(answer.failures, rates.failures)
    return Answer(answer.value, failures, answer.asked_at_ms), with_rates(selection, by_keys)
