"""Trace messages recorded from Java clients of both versions, decoded field by field.

`python -m tests.compat.record_traces` records the files again and documents their content.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from trace.codec import (
    EndTransaction,
    MessageType,
    Pub,
    SubAfter,
    SubBefore,
    TraceRecord,
    decode_trace,
    encode_trace,
)
from trace.timeline import Outcome, build_timeline

FOLDER = Path(__file__).parent / "recorded"
FILES = sorted(path.name for path in FOLDER.glob("*.jsonl"))


def bodies(name: str) -> list[str]:
    return [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]


@pytest.fixture(params=FILES)
def records(request: pytest.FixtureRequest) -> list[TraceRecord]:
    """All records of one file, without any broken record."""
    decoded = [decode_trace(body) for body in bodies(request.param)]
    assert [each.broken_count for each in decoded] == [0] * len(decoded)
    return [record for each in decoded for record in each.records]


def test_both_versions_are_recorded() -> None:
    assert [name.split(".")[0] for name in FILES] == ["java-4", "java-5"]


@pytest.mark.parametrize("name", FILES)
def test_nothing_in_the_text_is_lost(name: str) -> None:
    for body in bodies(name):
        # Java writes null for an absent text.
        assert encode_trace(decode_trace(body).records).decode() == body.replace("null", "")


def test_every_send_is_recorded(records: list[TraceRecord]) -> None:
    pubs = [record for record in records if isinstance(record, Pub)]
    kinds = Counter((pub.topic, MessageType(pub.msg_type).name) for pub in pubs)
    assert kinds == {
        ("Orders", "NORMAL"): 4,
        ("Orders", "DELAY"): 1,
        ("Orders", "TRANSACTION_HALF"): 3,
        ("Failing", "NORMAL"): 1,
    }
    first = next(pub for pub in pubs if pub.keys == "k1 k2")
    assert (first.group, first.tags, first.region_id) == ("PG-orders", "T", "DefaultRegion")
    assert (first.body_bytes, first.success) == (len("first"), True)
    for pub in pubs:
        assert pub.cost_ms >= 0
        assert pub.offset_msg_id.startswith("7F000001")
        assert pub.store_host.startswith("127.0.0.1:")


def test_every_end_of_a_transaction_is_recorded(records: list[TraceRecord]) -> None:
    ends = [record for record in records if isinstance(record, EndTransaction)]
    assert Counter(
        (end.keys, end.transaction_state, end.from_transaction_check) for end in ends
    ) == {
        ("commit-commit", "COMMIT_MESSAGE", False): 1,
        ("rollback-rollback", "ROLLBACK_MESSAGE", False): 1,
        ("unknown-commit", "UNKNOW", False): 1,
        ("unknown-commit", "COMMIT_MESSAGE", True): 1,
    }
    for end in ends:
        assert (end.group, end.topic) == ("PG-deciding", "Orders")
        assert end.msg_type == MessageType.TRANSACTION_COMMIT


def test_every_call_of_a_listener_has_two_ends(records: list[TraceRecord]) -> None:
    begun = [record for record in records if isinstance(record, SubBefore)]
    ended = [record for record in records if isinstance(record, SubAfter)]
    assert {(b.request_id, b.msg_id) for b in begun} == {(e.request_id, e.msg_id) for e in ended}
    assert {b.group for b in begun} == {e.group for e in ended} == {"CG-orders", "CG-failing"}
    failed = [e for e in ended if not e.success]
    assert {(e.group, e.keys, e.context_code) for e in failed} == {("CG-failing", "f1", 4)}
    assert {b.retry_times for b in begun if b.group == "CG-failing"} >= {0, 1}


def test_the_records_give_a_timeline(records: list[TraceRecord]) -> None:
    outcomes = {}
    for record in records:
        if isinstance(record, Pub) and record.keys in {"k1 k2", "f1", "k3"}:
            outcomes[record.keys] = build_timeline(records, msg_id=record.msg_id).outcome
    assert outcomes == {
        "k1 k2": Outcome.CONSUMED,
        "k3": Outcome.CONSUMED,
        "f1": Outcome.RETRYING,
    }
