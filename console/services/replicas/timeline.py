"""The picture of masters: who was the master of a set when, over the watched time. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

#: Width of the picture, in units of its view box.
WIDTH: Final = 1000.0
#: Least width of a bar: a short role stays visible.
BAR_WIDTH_MIN: Final = 2.0
#: Maximum number of rows: processes that were a master.
ROWS_MAX: Final = 16


class Change(Protocol):
    """From `at_ms` on, the master is `addr`; "" for none."""

    @property
    def at_ms(self) -> int: ...
    @property
    def addr(self) -> str: ...
    @property
    def epoch(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time with one master, inside the watched time; an empty `addr`: none answered."""

    begin_ms: int
    end_ms: int
    addr: str
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch in units of the view box."""

    x: float
    width: float
    stretch: Stretch


@dataclass(frozen=True, slots=True)
class Row:
    """The times of one process as master; the row without an address: no master answered."""

    addr: str
    bars: tuple[Bar, ...]
    total_ms: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """`unwatched` are the times without observations."""

    begin_ms: int
    end_ms: int
    rows: tuple[Row, ...]
    unwatched: tuple[Bar, ...]


def stretches(
    changes: Sequence[Change], spans: Sequence[tuple[int, int]], begin_ms: int, end_ms: int
) -> list[Stretch]:
    """Return the roles between two times, cut to the watched spans. `changes` are in order of time;
    the newest one before `begin_ms` is the master at `begin_ms`."""
    found = []
    for number, change in enumerate(changes):
        until_ms = changes[number + 1].at_ms if number + 1 < len(changes) else end_ms
        for span_begin_ms, span_end_ms in spans:
            low = max(change.at_ms, span_begin_ms, begin_ms)
            high = min(until_ms, span_end_ms, end_ms)
            if low < high:
                found.append(Stretch(low, high, change.addr, change.epoch))
    return sorted(found, key=lambda one: one.begin_ms)


def draw(
    changes: Sequence[Change],
    spans: Sequence[tuple[int, int]],
    begin_ms: int,
    end_ms: int,
    addrs: Sequence[str],
) -> Timeline:
    """Return the picture; `addrs` are the present processes, whose rows come first."""
    scale = WIDTH / max(1, end_ms - begin_ms)

    def bar(stretch: Stretch) -> Bar:
        width = max(BAR_WIDTH_MIN, (stretch.end_ms - stretch.begin_ms) * scale)
        x = min((stretch.begin_ms - begin_ms) * scale, WIDTH - width)
        return Bar(round(max(0.0, x), 1), round(width, 1), stretch)

    found = stretches(changes, spans, begin_ms, end_ms)
    past = dict.fromkeys(one.addr for one in reversed(found) if one.addr)
    order = [*dict.fromkeys([*addrs, *past])][:ROWS_MAX]
    if any(not one.addr for one in found):
        order.append("")
    rows = tuple(
        Row(
            addr,
            tuple(bar(one) for one in found if one.addr == addr),
            sum(one.end_ms - one.begin_ms for one in found if one.addr == addr),
        )
        for addr in order
    )
    unwatched = tuple(bar(one) for one in _gaps(spans, begin_ms, end_ms))
    return Timeline(begin_ms, end_ms, rows, unwatched)


def _gaps(spans: Sequence[tuple[int, int]], begin_ms: int, end_ms: int) -> list[Stretch]:
    gaps = []
    at_ms = begin_ms
    for low, high in sorted(spans):
        if low > at_ms:
            gaps.append(Stretch(at_ms, min(low, end_ms), "", None))
        at_ms = max(at_ms, high)
        if at_ms >= end_ms:
            break
    if at_ms < end_ms:
        gaps.append(Stretch(at_ms, end_ms, "", None))
    return [one for one in gaps if one.begin_ms < one.end_ms]
