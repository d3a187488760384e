"""trace/codec.py against the recorded formats of Java 4.9 and 5.x, and against random bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace.codec import (
    BROKEN_KEPT_MAX,
    EndTransaction,
    MessageType,
    Pub,
    Recall,
    SubAfter,
    SubBefore,
    TraceRecord,
    decode_trace,
    encode_record,
    encode_trace,
    message_keys,
)

JAVA_PUB = (
    "Pub\x011700000000000\x01DefaultRegion\x01PID-test\x01topic-test\x01ID\x01Tags\x01Keys"
    "\x01127.0.0.1:10911\x0126\x01245\x010\x01OFFSET\x01true\x02"
)
PUB = Pub(
    timestamp_ms=1_700_000_000_000,
    region_id="DefaultRegion",
    group="PID-test",
    topic="topic-test",
    msg_id="ID",
    tags="Tags",
    keys="Keys",
    store_host="127.0.0.1:10911",
    body_bytes=26,
    cost_ms=245,
    msg_type=MessageType.NORMAL,
    offset_msg_id="OFFSET",
    success=True,
)
SUB_BEFORE = SubBefore(
    timestamp_ms=5, region_id="R", group="CG", request_id="Q", msg_id="ID", retry_times=2, keys="K"
)
SUB_AFTER = SubAfter(
    request_id="Q",
    msg_id="ID",
    cost_ms=7,
    success=False,
    keys="K",
    context_code=4,
    timestamp_ms=12,
    group="CG",
)


def only(text: str) -> TraceRecord:
    decoded = decode_trace(text)
    assert decoded.broken == []
    assert decoded.broken_count == 0
    (record,) = decoded.records
    return record


def test_the_known_line_of_java_reads_and_is_written_back() -> None:
    assert only(JAVA_PUB) == PUB
    assert encode_record(PUB) == JAVA_PUB
    assert message_keys([PUB]) == ["ID", "Keys"]


def test_pub_of_an_old_client_has_no_offset_id() -> None:
    assert only(JAVA_PUB.replace("\x01OFFSET", "")) == Pub(
        **{name: getattr(PUB, name) for name in Pub.__struct_fields__} | {"offset_msg_id": ""}
    )


def test_pub_with_client_host_and_unknown_fields() -> None:
    record = only(JAVA_PUB[:-1] + "\x0110.0.0.1\x01new\x01newer\x02")
    assert isinstance(record, Pub)
    assert record.client_host == "10.0.0.1"
    assert record.success


@pytest.mark.parametrize(
    ("text", "context_code", "timestamp_ms", "group"),
    [
        ("SubAfter\x01Q\x01ID\x017\x01false\x01K\x02", None, None, ""),
        ("SubAfter\x01Q\x01ID\x017\x01false\x01K\x014\x02", 4, None, ""),
        ("SubAfter\x01Q\x01ID\x017\x01false\x01K\x014\x01\x02", 4, None, ""),
        ("SubAfter\x01Q\x01ID\x017\x01false\x01K\x014\x0112\x02", 4, 12, ""),
        ("SubAfter\x01Q\x01ID\x017\x01false\x01K\x014\x0112\x01CG\x02", 4, 12, "CG"),
        ("SubAfter\x01Q\x01ID\x017\x01false\x01K\x014\x0112\x01CG\x01more\x02", 4, 12, "CG"),
    ],
)
def test_every_length_of_sub_after(
    text: str, context_code: int | None, timestamp_ms: int | None, group: str
) -> None:
    record = only(text)
    assert isinstance(record, SubAfter)
    assert (record.request_id, record.msg_id, record.cost_ms) == ("Q", "ID", 7)
    assert not record.success
    assert (record.context_code, record.timestamp_ms, record.group) == (
        context_code,
        timestamp_ms,
        group,
    )


def test_sub_after_with_a_group_but_no_time_is_written_whole() -> None:
    record = SubAfter(request_id="Q", msg_id="ID", cost_ms=7, success=True, group="CG")
    assert only(encode_record(record)) == record


def test_sub_after_of_the_cloud_channel_runs_into_the_next_records() -> None:
    glued = "SubAfter\x01Q\x01A\x017\x01true\x01K\x010\x01"
    decoded = decode_trace(glued + glued.replace("\x01A\x01", "\x01B\x01") + JAVA_PUB + glued)
    assert [record.msg_id for record in decoded.records] == ["A", "B", "ID", "A"]
    assert decoded.broken_count == 0


def test_empty_fields_at_the_end_may_be_missing() -> None:
    record = only("SubBefore\x015\x01R\x01CG\x01Q\x01ID\x010\x02")
    assert isinstance(record, SubBefore)
    assert record.keys == ""


def test_null_of_java_is_an_empty_text() -> None:
    record = only("Recall\x015\x01null\x01null\x01T\x01ID\x01true\x02")
    assert record == Recall(timestamp_ms=5, group="", topic="T", msg_id="ID", success=True)


def test_end_transaction() -> None:
    record = EndTransaction(
        timestamp_ms=5,
        group="PG",
        topic="T",
        msg_id="ID",
        transaction_id="TX",
        transaction_state="COMMIT_MESSAGE",
        from_transaction_check=True,
    )
    text = encode_record(record)
    assert text.count("\x01") == 12
    assert only(text) == record


def test_broken_records_are_counted_and_kept_beside_valid_records() -> None:
    body = (
        "Nonsense\x011\x02"
        + JAVA_PUB
        + "Pub\x01not a time"
        + JAVA_PUB[3:]
        + "SubBefore\x01nan\x01R\x01G\x01Q\x01ID\x010\x01\x02Pub\x011\x02"
    )
    decoded = decode_trace(body.encode())
    assert decoded.records == [PUB]
    assert decoded.broken_count == 4
    assert [broken.reason for broken in decoded.broken] == [
        "unknown kind of record 'Nonsense'",
        "'not a time' is not a 64-bit number",
        "'nan' is not a 64-bit number",
        "Pub has only 2 fields",
    ]


def test_a_malformed_body_keeps_a_bounded_number_of_records() -> None:
    decoded = decode_trace(("x" * 10_000 + "\x02") * (BROKEN_KEPT_MAX + 5))
    assert decoded.broken_count == BROKEN_KEPT_MAX + 5
    assert len(decoded.broken) == BROKEN_KEPT_MAX
    assert all(len(broken.text) < 1000 for broken in decoded.broken)


@pytest.mark.parametrize("number", ["9223372036854775808", "1" * 5000, "1_000", "٣", " 7", "-", ""])
def test_numbers_outside_of_a_java_long_are_broken(number: str) -> None:
    assert decode_trace(f"Recall\x01{number}\x01R\x01G\x01T\x01ID\x01true\x02").broken_count == 1


def test_separators_inside_a_value_cannot_forge_a_record() -> None:
    forged = Recall(timestamp_ms=1, group="G", topic="T\x02Pub\x01", msg_id="ID")
    record = only(encode_record(forged))
    assert isinstance(record, Recall)
    assert record.topic == "T Pub "


def test_message_keys_holds_each_id_and_key_once() -> None:
    assert message_keys([PUB, SUB_BEFORE, SUB_AFTER]) == ["ID", "Keys", "K"]


@given(st.binary(max_size=2000))
def test_any_bytes_decode(body: bytes) -> None:
    decoded = decode_trace(body)
    assert decoded.broken_count == len(decoded.broken) or decoded.broken_count > BROKEN_KEPT_MAX


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                ["Pub", "SubBefore", "SubAfter", "Recall", "1", "-3", "true", "", "null"]
            ),
            max_size=17,
        ),
        max_size=8,
    )
)
def test_any_fields_decode_and_encode_again_unchanged(
    segments: list[list[str]],
) -> None:
    decoded = decode_trace("\x02".join("\x01".join(fields) for fields in segments))
    assert decode_trace(encode_trace(decoded.records)).records == decoded.records


def texts() -> st.SearchStrategy[str]:
    return st.text(
        st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), max_size=20
    ).filter(lambda text: text not in {"null", "Pub"})


LONGS = st.integers(-(2**63), 2**63 - 1)
RECORDS: st.SearchStrategy[TraceRecord] = st.one_of(
    [
        st.builds(
            kind,
            **{
                name: strategy
                for name, strategy in {
                    "timestamp_ms": LONGS,
                    "region_id": texts(),
                    "group": texts(),
                    "topic": texts(),
                    "msg_id": texts(),
                    "request_id": texts(),
                    "tags": texts(),
                    "keys": texts(),
                    "store_host": texts(),
                    "body_bytes": LONGS,
                    "cost_ms": LONGS,
                    "msg_type": LONGS,
                    "retry_times": LONGS,
                    "context_code": LONGS,
                    "transaction_id": texts(),
                    "transaction_state": texts(),
                    "from_transaction_check": st.booleans(),
                    "success": st.booleans(),
                    "offset_msg_id": texts(),
                    "client_host": texts(),
                }.items()
                if name in kind.__struct_fields__
            },
        )
        for kind in (Pub, SubBefore, SubAfter, EndTransaction, Recall)
    ]
)


@given(st.lists(RECORDS, max_size=5))
def test_records_survive_encoding(records: list[TraceRecord]) -> None:
    decoded = decode_trace(encode_trace(records))
    assert decoded.records == records
    assert decoded.broken_count == 0
