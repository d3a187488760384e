"""The selection of a view from a cluster, with the consume rates of the shown edges."""

import weakref
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from console.areas.topology.selection import Selection, View, select, with_rates
from console.gateway import Answer, Cluster, ClusterUnreachable, TooSlow, merge_failures
from console.gateway.topology.live import topology
from console.gateway.topology.measures import RATED_EDGES_MAX, Pair, consume_rates
from console.gateway.topology.model import Edge, Topology, name_of

#: Maximum number of kept selections, of all clusters and views.
SELECTIONS_MAX: Final = 8


class _Same:
    """A topology as a key of the cache: equal only to itself, so no comparison of all nodes.

    The weak reference lets an old topology go while its small selections are still in the cache.
    """

    __slots__ = ("_hash", "of")

    def __init__(self, whole: Topology) -> None:
        self.of = weakref.ref(whole)
        self._hash = id(whole)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.of() is self.of()

    def __hash__(self) -> int:
        return self._hash


@lru_cache(maxsize=SELECTIONS_MAX)
def _selected(key: _Same, view: View) -> Selection:
    whole = key.of()
    assert whole is not None, "the caller has the topology"
    return select(whole, view)


def ask_selection(cluster: Cluster, view: View) -> tuple[Answer[Topology], Selection]:
    """Return the answer of the cluster and the shown part. Raises GatewayError."""
    answer = cluster.ask(topology)
    return _with_rates(cluster, answer, view, None)


def ask_early_selection(
    cluster: Cluster, view: View, wait_s: float | None, rates_wait_s: float
) -> tuple[Answer[Topology], Selection] | None:
    """Like `ask_selection`, but None when the topology takes longer than `wait_s`.

    After `rates_wait_s` the consume rates of the edges stay unknown. Both questions go on, and a
    later call has their answers.
    """
    answer = cluster.ask(topology) if wait_s is None else cluster.ask_within(wait_s, topology)
    return None if answer is None else _with_rates(cluster, answer, view, rates_wait_s)


def _with_rates(
    cluster: Cluster, answer: Answer[Topology], view: View, wait_s: float | None
) -> tuple[Answer[Topology], Selection]:
    """The shown part. The time of the returned answer is the time of its oldest values."""
    answer = as_measured(answer)
    selection = _selected(_Same(answer.value), view)
    ends = [edge.ends for edge in selection.edges if _lacks_rate(edge)][:RATED_EDGES_MAX]
    pairs = tuple((name_of(topic), name_of(group)) for topic, group in ends)
    if not pairs:
        return answer, selection
    try:
        if wait_s is None:
            rates: Answer[Mapping[Pair, float | None]] | None = cluster.ask(consume_rates, pairs)
        else:
            rates = cluster.ask_within(wait_s, consume_rates, pairs)
    except (ClusterUnreachable, TooSlow):
        rates = None
    if rates is None:
        return answer, selection  # rates stay unknown
    by_keys = {end: rates.value.get(pair) for end, pair in zip(ends, pairs, strict=True)}
    failures = merge_failures(answer.failures, rates.failures)
    asked_at_ms = min(answer.asked_at_ms, rates.asked_at_ms)
    return Answer(answer.value, failures, asked_at_ms), with_rates(selection, by_keys)


def as_measured(answer: Answer[Topology]) -> Answer[Topology]:
    """The answer with the time of its metrics, which brokers may have taken before the question."""
    measured_ms = answer.value.measured_ms
    if measured_ms is None or measured_ms >= answer.asked_at_ms:
        return answer
    return replace(answer, asked_at_ms=measured_ms)


def _lacks_rate(edge: Edge) -> bool:
    """Whether a request may find the consume rate of an edge."""
    is_known = edge.rate is not None or edge.kind != "consumption"
    return not is_known and edge.is_single and not edge.stale and not edge.down
