"""The shown part of a topology, and its drawing."""

import time
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.areas.topology.drawing import NODE_HEIGHT, NODE_WIDTH, draw
from console.areas.topology.reading import FOCUS_CHARS_MAX, LIMIT_MAX, read_view
from console.areas.topology.selection import (
    EDGES_MAX,
    NODES_MAX,
    Selection,
    View,
    select,
    with_rates,
)
from console.areas.topology.templatetags.topology import topology_lines
from console.gateway.topology.building import TopicMeasures, topology_of
from console.gateway.topology.model import NODE_KINDS
from tests.unit.console.topologies import shop, wide

SHOP = topology_of(shop())
#: Topics and groups of the largest supported cluster.
MANY = 5_000
#: Generous bound of the selection in such a cluster, seconds; measured: about 0.2.
SELECT_S_MAX = 60.0


def keys(selection: Selection) -> set[str]:
    return {node.key for node in selection.nodes}


def ends_are_shown(selection: Selection) -> bool:
    return all(end in keys(selection) for edge in selection.edges for end in edge.ends)


def test_system_objects_and_retry_topics_are_hidden_and_counted() -> None:
    found = select(SHOP, View())
    assert keys(found) == {
        *("namesrv:ns:9876", "broker:a", "broker:b", "producer:shop"),
        *("topic:orders", "topic:payments", "group:billing", "group:idle"),
    }
    assert (found.system_hidden, found.retry_hidden) == (3, 2)
    everything = select(SHOP, View(with_system=True, with_retry=True))
    assert keys(everything) == {node.key for node in SHOP.nodes}
    assert (everything.system_hidden, everything.retry_hidden) == (0, 0)
    assert len(everything.edges) == len(SHOP.edges)


def test_the_focus_shows_neighbours_and_no_path_leads_through_a_broker() -> None:
    near = select(SHOP, View(focus="topic:orders"))
    assert keys(near) == {"topic:orders", "broker:a", "broker:b", "group:billing"}
    far = select(SHOP, View(focus="group:billing", steps=2))
    assert keys(far) == {"group:billing", "topic:orders", "broker:a", "broker:b"}
    of_broker = select(SHOP, View(focus="broker:b", steps=1))
    assert keys(of_broker) == {"broker:b", "namesrv:ns:9876", "producer:shop", "topic:orders"}


def test_a_hidden_object_appears_when_it_has_the_focus() -> None:
    found = select(SHOP, View(focus="topic:%DLQ%billing"))
    assert keys(found) == {"topic:%DLQ%billing", "broker:a", "group:billing"}


def test_an_unknown_focus_shows_everything_and_says_so() -> None:
    found = select(SHOP, View(focus="topic:none"))
    assert found.focus is None
    assert keys(found) == keys(select(SHOP, View()))


def test_a_search_shows_matching_objects_and_their_neighbours() -> None:
    found = select(SHOP, View(search="PAY men"))
    assert keys(found) == {"topic:payments", "broker:a", "group:idle"}
    assert keys(select(SHOP, View(search="nothing like this"))) == set()


def test_collapsed_kinds_are_one_node_with_the_sum_of_the_edges() -> None:
    found = select(SHOP, View(stacked=frozenset({"broker", "namesrv"})))
    (stack,) = [node for node in found.nodes if node.kind == "broker"]
    assert (stack.key, stack.count, stack.in_rate) == ("broker:*", 2, 15.0)
    assert "namesrv:ns:9876" in keys(found), "a single object is not collapsed"
    (stored,) = [edge for edge in found.edges if edge.ends == ("broker:*", "topic:orders")]
    assert (stored.rate, stored.is_single) == (4.5, False)
    assert found.counts["broker"] == 2
    assert ends_are_shown(found)


def test_consume_rates_reach_their_edges_only() -> None:
    found = with_rates(select(SHOP, View()), {("topic:orders", "group:billing"): 2.5})
    rates = {edge.ends: edge.rate for edge in found.edges if edge.kind == "consumption"}
    assert rates == {
        ("topic:orders", "group:billing"): 2.5,
        ("topic:payments", "group:idle"): None,
    }


def test_a_large_cluster_is_cut_with_trouble_and_traffic_first() -> None:
    topology = wide(1_001)
    found = select(topology, View())
    assert len(found.nodes) == NODES_MAX
    assert found.nodes_left_out == len(topology.nodes) - NODES_MAX
    assert {"broker:a", "broker:b", "broker:c", "namesrv:ns:9876"} <= keys(found)
    assert "group:g01000" in keys(found), "the highest order of magnitude"
    assert "group:g00000" not in keys(found), "without lag"
    topics = {key.removeprefix("topic:t") for key in keys(found) if key.startswith("topic:")}
    groups = {key.removeprefix("group:g") for key in keys(found) if key.startswith("group:")}
    assert len(topics & groups) >= 147, "both ends of an edge are shown"
    assert ends_are_shown(found)
    focused = select(topology, View(focus="group:g00000"))
    assert keys(focused) >= {"group:g00000", "topic:t00000"}


def test_edges_are_bounded() -> None:
    found = select(wide(500), View(nodes_max=2_000))
    assert len(found.edges) == EDGES_MAX
    assert found.edges_left_out > 0
    assert ends_are_shown(found)


def test_thousands_of_objects_are_selected_in_time() -> None:
    topology = wide(MANY)
    begin = time.perf_counter()
    assert len(draw(select(topology, View())).boxes) == NODES_MAX
    assert time.perf_counter() - begin < SELECT_S_MAX


def test_boxes_do_not_overlap_and_lines_end_at_boxes() -> None:
    drawing = draw(select(SHOP, View(with_system=True, with_retry=True)))
    for one, other in combinations(drawing.boxes, 2):
        apart = abs(one.y - other.y) >= NODE_HEIGHT or abs(one.x - other.x) >= NODE_WIDTH
        assert apart, (one.node.key, other.node.key)
    assert all(0 <= box.x <= drawing.width - NODE_WIDTH for box in drawing.boxes)
    assert all(0 <= box.y <= drawing.height - NODE_HEIGHT for box in drawing.boxes)
    assert all(line.left.x < line.right.x for line in drawing.lines)
    assert len({box.id for box in drawing.boxes}) == len(drawing.boxes)


def test_no_line_crosses_a_label() -> None:
    drawing = draw(select(SHOP, View(with_retry=True)))
    text = topology_lines(drawing.lines)
    labels = text.index("<text")
    assert text.count("<path", 0, labels) == len(drawing.lines)
    assert text.count("<text", labels) > 1
    assert "<path" not in text[labels:]


def test_the_layout_stays_while_rates_change() -> None:
    lags = {"billing": {"orders": 4_000_000}, "idle": {"payments": 0}}
    rates = {"orders": {"a": 0.0, "b": 90_000.0}, "payments": {"a": 5.0}}
    busy = topology_of(shop(of_topics=TopicMeasures(rates, {"payments": 7.0}, lags)))
    before, after = (draw(select(each, View())) for each in (SHOP, busy))
    assert [(box.id, box.x, box.y) for box in before.boxes] == [
        (box.id, box.x, box.y) for box in after.boxes
    ]


def test_nothing_to_draw_is_an_empty_drawing() -> None:
    drawing = draw(select(SHOP, View(search="nothing like this")))
    assert (drawing.boxes, drawing.lines, drawing.headings) == ([], [], [])


def test_the_parameters_of_a_url() -> None:
    reading = read_view(
        {"q": " a ", "focus": "topic:x", "steps": "2", "collapse": "topic,broker", "system": "1"}
    )
    assert reading.errors == {}
    assert reading.view == View("a", "topic:x", 2, frozenset({"topic", "broker"}), True, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("q", "x" * 10_000),
        *(("focus", value) for value in ("topic", "nothing:x", ":", "topic:" + "x" * 400)),
        *(("steps", value) for value in ("0", "3", "-1", "1.5", "²", "9" * 99)),
        *(("limit", value) for value in ("0", "2001", "x", "٣")),
        *(("collapse", value) for value in ("everything", "topic;broker")),
        *((name, value) for name in ("system", "retry") for value in ("maybe", "2")),
    ],
)
def test_hostile_parameters_are_errors_with_defaults(name: str, value: str) -> None:
    reading = read_view({name: value})
    assert list(reading.errors) == [name]
    view = reading.view
    assert (view.focus, view.steps, view.stacked) == ("", 1, frozenset())
    assert (view.with_system, view.with_retry, view.nodes_max) == (False, False, NODES_MAX)


TEXTS = st.one_of(st.text(max_size=12), st.sampled_from(["1", "true", "topic:orders", "topic"]))


@given(st.dictionaries(st.sampled_from(["q", "focus", "steps", "collapse", "limit"]), TEXTS))
def test_every_view_of_a_url_has_a_drawing(params: dict[str, str]) -> None:
    view = read_view(params).view
    assert len(view.focus) <= FOCUS_CHARS_MAX
    assert view.nodes_max <= LIMIT_MAX
    assert view.stacked <= set(NODE_KINDS)
    found = select(SHOP, view)
    assert ends_are_shown(found)
    assert len(found.nodes) <= view.nodes_max
    assert len(draw(found).boxes) == len(found.nodes)
