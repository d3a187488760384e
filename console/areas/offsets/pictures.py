"""The bar of a queue in the preview of a reset: stored range, current and new offset. Pure."""

from dataclasses import dataclass
from typing import Final

from console.gateway.offsets.plan import QueueMove

#: Width of a bar's drawing, in units of its view box.
WIDTH: Final = 200.0


@dataclass(frozen=True, slots=True)
class QueueBar:
    """Places of a bar in units of the view box; None: the queue has no such offset.

    `change_x` and `change_width` are the messages between current and new offset; `is_skip` says
    whether the group skips the messages or consumes them again.
    """

    begin_x: float
    end_x: float
    current_x: float | None
    new_x: float | None
    change_x: float = 0.0
    change_width: float = 0.0
    is_skip: bool = False

    @property
    def stored_width(self) -> float:
        return max(1.0, self.end_x - self.begin_x)


def bar_of(move: QueueMove) -> QueueBar:
    """Return the bar of a queue. The scale covers the stored range and both offsets."""
    position = move.position
    offsets = [each for each in (position.offset, move.new) if each is not None]
    low = min(position.begin, *offsets) if offsets else position.begin
    high = max(position.end, *offsets) if offsets else position.end
    scale = WIDTH / max(1, high - low)

    def x(offset: int) -> float:
        return round((offset - low) * scale, 1)

    current = None if position.offset is None else x(position.offset)
    new = None if move.new is None else x(move.new)
    if current is None or new is None:
        return QueueBar(x(position.begin), x(position.end), current, new)
    return QueueBar(
        x(position.begin),
        x(position.end),
        current,
        new,
        min(current, new),
        round(abs(new - current), 1),
        new > current,
    )
