"""Layout of the heat map and of the topology graph."""

from bisect import bisect_right
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.services.analytics.aggregates import Edge
from console.services.analytics.graph import NODES_MAX, ROW_HEIGHT, ends_of, graph_of
from console.services.analytics.heatmap import (
    BANDS_MS,
    COLUMNS_MAX,
    FIRST_BUCKETS,
    SHADES,
    band_of,
    drawn_points,
    heat_map,
    shade_of,
)
from trace.latency import bucket_value_ms


def edge(
    producer: str | None, topic: str | None, group: str | None, messages: int = 1, **more: int
) -> Edge:
    counts = {"bytes": 0, "attempts": messages, "failures": 0, "dead_letters": 0}
    return Edge(producer, topic, group, messages, **{**counts, "last_ms": 0, **more})


def test_cells_stand_where_time_and_band_meet() -> None:
    drawn = heat_map(range(0, 120, 60), [(0, band_of(3), 5), (60, band_of(70), 1), (999, 0, 7)])
    assert [(band.from_ms, band.to_ms) for band in drawn.bands] == [
        *((50, 100), (20, 50), (10, 20), (5, 10), (2, 5)),
    ]
    assert [cell.count for cell in drawn.bands[0].cells] == [0, 1]
    assert [cell.count for cell in drawn.bands[-1].cells] == [5, 0]
    assert (drawn.most, drawn.bands[-1].total) == (5, 5)


def test_no_counts_give_no_bands() -> None:
    assert heat_map(range(1), []).bands == []


@pytest.mark.parametrize("count", [1, 2, COLUMNS_MAX, COLUMNS_MAX + 1, 121, 122])
def test_two_points_of_many_become_one_column(count: int) -> None:
    points = range(300, 300 + 60 * count, 60)
    drawn = heat_map(drawn_points(points), [(point, 3, 1) for point in points])
    assert len(drawn.points) <= COLUMNS_MAX
    assert drawn.bands[0].total == count


@given(st.integers(0, 900))
def test_buckets_fall_into_the_bands_of_their_values(bucket: int) -> None:
    assert bisect_right(FIRST_BUCKETS, bucket) - 1 == band_of(bucket_value_ms(bucket))


@given(st.floats(0, 1e12))
def test_every_time_has_a_band(value_ms: float) -> None:
    place = band_of(value_ms)
    assert BANDS_MS[place] <= value_ms
    assert place + 1 == len(BANDS_MS) or value_ms < BANDS_MS[place + 1]


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_shades_grow_and_none_is_invisible(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert 1 <= shade_of(low, high) <= shade_of(high, high) == SHADES
    assert shade_of(0, high) == 0


def test_producers_topics_and_groups_stand_in_three_columns() -> None:
    graph = graph_of([edge("shop", "orders", None, 10), edge(None, "orders", "billing", 9)])
    assert {(node.kind, node.name) for node in graph.nodes} == {
        ("producer", "shop"),
        ("topic", "orders"),
        ("group", "billing"),
    }
    assert len(graph.lines) == 2
    assert graph.left_out == 0


def test_the_same_name_as_topic_and_group_is_two_nodes() -> None:
    assert len(graph_of([edge("a", "a", None), edge(None, "a", "a")]).nodes) == 3


def test_only_the_busiest_nodes_are_drawn_with_their_edges() -> None:
    edges = [edge(f"p{n}", f"t{n}", None, 1000 - n) for n in range(100)]
    graph = graph_of(edges)
    assert len(graph.nodes) == NODES_MAX
    assert graph.left_out == 200 - NODES_MAX
    ends = {end for line in graph.lines for end in ends_of(line.edge)}
    assert ends == {(node.column, node.name) for node in graph.nodes}
    assert ("p0" in {node.name for node in graph.nodes}) is True


def test_nodes_of_a_column_do_not_overlap() -> None:
    graph = graph_of([edge(f"p{n % 5}", f"t{n % 9}", None, n + 1) for n in range(45)])
    for column in range(3):
        heights = sorted(node.y for node in graph.nodes if node.column == column)
        assert all(b - a == ROW_HEIGHT for a, b in pairwise(heights))
        assert all(height < graph.height for height in heights)


@pytest.mark.parametrize(
    ("more", "tone"),
    [
        ({}, "good"),
        ({"failures": 2}, "warn"),
        ({"failures": 20}, "bad"),
        ({"never_consumed": 1}, "warn"),
        ({"dead_letters": 1}, "bad"),
        ({"attempts": 0}, "dim"),
    ],
)
def test_lines_show_the_health_of_edges(more: dict[str, int], tone: str) -> None:
    [line] = graph_of([edge("a", "b", None, 100, **more)]).lines
    assert line.tone == tone


def test_no_edges_give_no_drawing() -> None:
    assert graph_of([]).lines == []
