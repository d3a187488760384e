"""The bar of a queue: stored range, current and new offset, what lies between."""

from console.areas.offsets.pictures import WIDTH, bar_of
from console.gateway.engine.session import BrokerRef
from console.gateway.offsets.plan import QueueMove, QueuePosition

BROKER = BrokerRef("broker-a", 0, "127.0.0.1:10911")


def move(begin: int, end: int, current: int | None, new: int | None) -> QueueMove:
    return QueueMove(QueuePosition(BROKER, 0, begin, end, current), new)


def test_a_skip_covers_the_range_from_the_current_to_the_new_offset() -> None:
    bar = bar_of(move(100, 200, 150, 200))
    assert (bar.begin_x, bar.end_x, bar.current_x, bar.new_x) == (0, WIDTH, WIDTH / 2, WIDTH)
    assert (bar.change_x, bar.change_width, bar.is_skip) == (WIDTH / 2, WIDTH / 2, True)


def test_messages_consumed_again_are_no_skip() -> None:
    bar = bar_of(move(0, 100, 75, 25))
    assert (bar.change_x, bar.change_width, bar.is_skip) == (WIDTH / 4, WIDTH / 2, False)


def test_offsets_outside_the_stored_range_widen_the_scale() -> None:
    bar = bar_of(move(100, 200, 0, 100))
    assert (bar.current_x, bar.begin_x, bar.end_x) == (0, WIDTH / 2, WIDTH)


def test_empty_queues_and_missing_offsets_have_a_bar() -> None:
    bar = bar_of(move(0, 0, None, None))
    assert (bar.current_x, bar.new_x, bar.change_width) == (None, None, 0)
    assert bar.stored_width == 1
    assert bar_of(move(7, 7, 7, 7)).change_width == 0
