"""The text summary of a flame graph."""

from benchmarks.profile import widest


def frame(name: str, x: int, width: int) -> str:
    title = f"<g><title>{name} ({width} samples, 1.0%)</title>"
    return f'{title}<rect x="1%" y="2" width="3%" fill="rgb(1,2,3)" fg:x="{x}" fg:w="{width}"/></g>'


def test_shares_are_relative_to_the_event_loop_thread() -> None:
    svg = "".join(
        [
            frame("all", 0, 1000),
            frame("wait (lanes.py:1)", 0, 800),
            frame("run (core_broker/program.py:68)", 800, 200),
            frame("a&lt;b&gt;", 800, 50),
            frame("write", 850, 20),
            frame("write", 900, 100),
        ]
    )
    assert widest(svg) == [(50.0, "write"), (25.0, "a<b>")]


def test_a_graph_without_the_loop_is_shown_whole() -> None:
    assert widest(frame("all", 0, 10) + frame("read", 0, 5)) == [(50.0, "read")]
