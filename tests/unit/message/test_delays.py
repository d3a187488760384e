"""Delay levels."""

import pytest

from core_broker.config import DELAY_LEVELS
from core_broker.message.delays import parse_delay_levels


def test_the_default_has_eighteen_levels() -> None:
    levels = parse_delay_levels(DELAY_LEVELS)
    assert len(levels) == 18
    assert (levels[0], levels[2], levels[4], levels[17]) == (1_000, 10_000, 60_000, 7_200_000)
    assert parse_delay_levels("2d") == (172_800_000,)


@pytest.mark.parametrize("text", ["5", "s", "1x", "1.5s", "-1s"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a number followed by"):
        parse_delay_levels(text)
