"""The facts that new events change."""

from functools import partial

import msgspec
import pyarrow
import pytest

from spark_jobs.spark.message_index import is_among
from spark_jobs.tables.facts import NONE, by_message, changed_facts, message_hashes
from tests.spark.test_facts import HOUR, START_MS, consumed, events_of, rows_of, sent
from trace.codec import Recall, TraceRecord
from trace.lake import HOUR_MS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_new_events_change_the_facts_of_their_messages_only() -> None:
    def at(hour: int, records: list[TraceRecord]) -> list[TraceRecord]:
        later = [
            msgspec.structs.replace(record, timestamp_ms=record.timestamp_ms + hour * HOUR_MS)
            for record in records
            if record.timestamp_ms is not None
        ]
        assert len(later) == len(records)
        return later

    def changes(new: list[TraceRecord], older: list[TraceRecord]) -> list[tuple[str, int, str]]:
        wanted = message_hashes(events_of(new))
        tables = [
            *by_message(events_of(new), 1),
            *by_message(events_of(older), 1, is_new=False, wanted=partial(is_among, wanted=wanted)),
        ]
        events = pyarrow.concat_tables([table for _part, table in tables])
        rows = rows_of([changed_facts(events, {})])
        return sorted((r.msg_id, r.hour_ms // HOUR_MS - HOUR, r.fact) for r in rows)

    begin, end = consumed(0, "A", "r1")
    retry = at(5, consumed(0, "A", "r2", retry_times=1))
    other = [sent(0, "Z"), *consumed(0, "Z", "r8")]
    one = ("A", 0, "attempt")
    assert changes([end], [begin, *other]) == [one]
    # The end of an attempt whose begin comes late, in another hour.
    assert changes([begin], at(2, [end])) == [one, ("A", 2, NONE)]
    # Repeated records change nothing.
    assert changes([begin, end], [begin, end]) == []
    # A retry changes the number of attempts; so does an earlier attempt.
    assert changes(retry, [begin, end]) == changes([begin, end], retry)
    assert changes(retry, [begin, end]) == [one, ("A", 5, "attempt")]
    # The late send of a consumed message, in a batch.
    both = [one, ("A", 3, "send"), ("B", 3, "send")]
    assert changes(at(3, [sent(0, "A,B")]), [begin, end, *other]) == both
    # A message is consumed after all, and recalled.
    assert changes(at(4, consumed(0, "B", "r7")), [sent(0, "A,B"), sent(0, "C")]) == [
        ("B", 0, "send"),
        ("B", 4, "attempt"),
    ]
    recall = Recall(timestamp_ms=START_MS, group="g", topic="t", msg_id="A")
    assert changes([recall], [begin]) == []
    assert changes(at(2, [recall]), [sent(0, "A")]) == [("A", 0, "send")]
    # A day later the earlier attempts no longer count.
    assert changes(at(30, consumed(0, "A", "r9")), [begin, end]) == [("A", 30, "attempt")]
