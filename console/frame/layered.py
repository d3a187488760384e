"""Order of nodes in columns with few crossings of edges. Pure.

Barycenter heuristic: each pass moves every node of a column to the mean height of the node's
neighbours. The order depends only on the nodes, their first order and the edges, so a drawing with
the same nodes and edges stays the same.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)

#: Number of passes over all columns.
SWEEPS: Final = 4


def ordered_columns(
    columns: Sequence[Sequence[K]],
    edges: Iterable[tuple[K, K]],
    tie: Callable[[K], str],
) -> list[list[K]]:
    """Return the columns with ordered nodes. `tie` orders nodes of equal mean height.

    Both ends of each edge must be in a column; a node without edges keeps its height.
    """
    ordered = [list(column) for column in columns]
    height = {key: row for column in ordered for row, key in enumerate(column)}
    neighbours: dict[K, list[K]] = {key: [] for key in height}
    for source, target in edges:
        neighbours[source].append(target)
        neighbours[target].append(source)

    def middle(key: K) -> tuple[float, str]:
        others = neighbours[key]
        mean = sum(height[other] for other in others) / len(others) if others else height[key]
        return mean, tie(key)

    for sweep in range(SWEEPS):
        for column in ordered if sweep % 2 == 0 else reversed(ordered):
            column.sort(key=middle)
            height.update((key, row) for row, key in enumerate(column))
    return ordered
