"""Tags codes, and delivery times of delayed messages."""

from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.store.tags_codes import TAGS_MAX, TagsCodes

NOW_MS = 1_700_000_000_000
codes = TagsCodes((1_000, 5_000))


def test_tags_give_their_java_hash() -> None:
    assert codes.code("T", {"TAGS": "TagA"}, NOW_MS) == 2598919
    assert codes.code("T", {"TAGS": "TagA", "DELAY": "1"}, NOW_MS) == 2598919
    assert codes.code("T", {}, NOW_MS) == 0


def test_delayed_messages_give_their_time() -> None:
    assert codes.code(SCHEDULE_TOPIC, {"DELAY": "2", "TAGS": "A"}, NOW_MS) == NOW_MS + 5_000
    assert codes.code(SCHEDULE_TOPIC, {"DELAY": "9"}, NOW_MS) == NOW_MS + 5_000
    assert codes.code(SCHEDULE_TOPIC, {"TAGS": "A"}, NOW_MS) == 65


def test_no_text_of_a_level_does_harm() -> None:
    for text in ("", "x", "-1", "0", "9" * 5000):
        assert codes.code(SCHEDULE_TOPIC, {"DELAY": text}, NOW_MS) == 0


def test_many_tags_are_not_kept() -> None:
    small = TagsCodes(())
    for number in range(TAGS_MAX + 2):
        small.code("T", {"TAGS": f"tag-{number}"}, NOW_MS)
    assert small.code("T", {"TAGS": "A"}, NOW_MS) == 65
