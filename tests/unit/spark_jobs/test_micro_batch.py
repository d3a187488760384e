"""Merged offsets and retained hours of a snapshot."""

import pytest

pytest.importorskip("pyspark")

from spark_jobs.jobs.micro_batch import merged_offsets
from spark_jobs.jobs.retention import parts_from_hour


def test_expired_hours_are_dropped() -> None:
    parts = {"events": {9: [1], 10: [1, 2], 11: [2]}, "minute": {8: [1]}}
    assert parts_from_hour(parts, 10) == {"events": {10: [1, 2], 11: [2]}, "minute": {}}


def test_an_unreachable_broker_or_queue_keeps_its_offset() -> None:
    before = {"a": {0: 5, 1: 6}, "b": {0: 7}}
    assert merged_offsets(before, {"a": {1: 9}, "c": {0: 1}}) == {
        "a": {0: 5, 1: 9},
        "b": {0: 7},
        "c": {0: 1},
    }
