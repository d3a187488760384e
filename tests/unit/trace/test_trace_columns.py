"""Arrow columns hold the same records as `trace.codec` returns, compiled and in plain Python."""

import json
import random
from array import array
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from tests.support.plain_modules import plain_module
from trace import codec, columns, scan
from trace.codec import (
    EndTransaction,
    Pub,
    Recall,
    SubAfter,
    SubBefore,
    TraceRecord,
    decode_trace,
    encode_trace,
)
from trace.columns import BROKEN, arrow_schema, decode_events
from trace.tables import EVENTS

RECORDED = Path(__file__).parent / "recorded"
NOW_MS = 1_762_300_000_000
SEED = 20261105
# Columns in the order of the codec's attributes; some columns serve several kinds of records.
COLUMN_OF = {"group": "group_name"}
PLACE_COLUMNS = {"broker", "queue_id", "queue_offset", "record_index", "stored_ms", "event_ms"}


Row = dict[str, Any]


@pytest.fixture(params=["installed", "plain"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with the installed module, which may be compiled, and with plain Python."""
    module = scan if request.param == "installed" else plain_module("trace.scan")
    monkeypatch.setattr(codec, "scan", module)
    monkeypatch.setattr(columns, "scan", module)


def messages_of(bodies: list[bytes]) -> pyarrow.RecordBatch:
    count = len(bodies)
    values = {
        "broker_name": pyarrow.repeat("broker-a", count),
        "queue_id": pyarrow.array([0] * count, pyarrow.int32()),
        "queue_offset": pyarrow.array(range(count), pyarrow.int64()),
        "store_timestamp": pyarrow.array([NOW_MS * 1000] * count, pyarrow.timestamp("us", "UTC")),
        "body": pyarrow.array(bodies, pyarrow.binary()),
    }
    return pyarrow.RecordBatch.from_pydict(values)


def decoded(bodies: list[bytes]) -> dict[int, list[Row]]:
    """The events of each body, by its index in the list."""
    found: dict[int, list[Row]] = {place: [] for place in range(len(bodies))}
    for event in decode_events(messages_of(bodies)).to_pylist():
        assert event["record_index"] == len(found[event["queue_offset"]])
        found[event["queue_offset"]].append(event)
    return found


def as_codec_reads(record: TraceRecord) -> dict[str, Any]:
    values = {COLUMN_OF.get(name, name): getattr(record, name) for name in record.__struct_fields__}
    return {"kind": type(record).__name__, **values}


def check_same(body: bytes, events: list[Row]) -> None:
    expected = decode_trace(body)
    sound = [event for event in events if event["kind"] != BROKEN]
    got = []
    for event, record in zip(sound, expected.records, strict=True):
        wanted = as_codec_reads(record)
        got.append({name: event[name] for name in wanted})
        lacking = event.keys() - wanted.keys() - PLACE_COLUMNS
        assert all(event[name] is None for name in lacking)
    assert got == [as_codec_reads(record) for record in expected.records], body
    broken = [event for event in events if event["kind"] == BROKEN]
    assert len(broken) == expected.broken_count, body
    assert [event["raw"] for event in broken] == [kept.text for kept in expected.broken], body
    assert all(event["msg_id"] is None and event["success"] is None for event in broken)
    assert all(event["event_ms"] == NOW_MS for event in broken)


def sample_records() -> list[TraceRecord]:
    return [
        Pub(
            timestamp_ms=NOW_MS,
            region_id="DefaultRegion",
            group="orders-producer",
            topic="orders",
            msg_id="7F0000010001",
            tags="paid",
            keys="k1 k2",
            store_host="10.0.0.1:10911",
            body_bytes=120,
            cost_ms=7,
            msg_type=3,
            offset_msg_id="0A000001",
            success=False,
            client_host="10.0.0.9",
        ),
        SubBefore(
            timestamp_ms=NOW_MS + 20, group="billing", request_id="R1", msg_id="M1", retry_times=2
        ),
        SubAfter(
            request_id="R1",
            msg_id="M1",
            cost_ms=5,
            success=True,
            keys="k",
            context_code=0,
            timestamp_ms=NOW_MS + 25,
            group="billing",
        ),
        SubAfter(request_id="R2", msg_id="M2", cost_ms=5, success=False),
        EndTransaction(
            timestamp_ms=NOW_MS,
            group="g",
            topic="t",
            msg_id="M",
            transaction_id="T",
            transaction_state="COMMIT_MESSAGE",
            from_transaction_check=True,
        ),
        Recall(timestamp_ms=NOW_MS, group="g", topic="t", msg_id="M", success=False),
    ]


def old_and_odd_bodies() -> list[bytes]:
    """Variants of other writers, and malformed records."""
    pub = "Pub\x011762300000000\x01r\x01g\x01t\x01m\x01null\x01k\x01h\x0112\x013\x010"
    after = "SubAfter\x01R\x01M\x014\x01true\x01k\x010"
    return [
        text.encode() if isinstance(text, str) else text
        for text in (
            "",
            "\x02\x02",
            f"{pub}\x01true\x02",
            f"{pub}\x01offset\x01TRUE\x02",
            f"{pub}\x01offset\x01true\x01host\x01later\x01fields\x02",
            f"{pub}\x02",
            "SubAfter\x01R\x01M\x014\x01true\x02",
            "SubAfter\x01R\x01M\x014\x01true\x01k\x02",
            f"{after}\x02",
            f"{after}\x01\x02",
            f"{after}\x01junk\x02",
            f"{after}\x01junk\x01g\x02",
            f"{after}\x01null\x01null\x02",
            f"{after}\x01{after}\x01{after}\x01",
            f"{after}\x01Pub\x02",
            f"{after}\x01{pub}\x01true\x02",
            f"{after}\x01SubBeforeX\x01g\x02",
            "SubBefore\x01-5\x01r\x01g\x01R\x01M\x0199999999999999999999\x02",
            "SubBefore\x019223372036854775807\x01r\x01g\x01R\x01M\x010\x02",
            "SubBefore\x01-9223372036854775808\x01r\x01g\x01R\x01M\x010\x01k\x02",
            "SubBefore\x019223372036854775808\x01r\x01g\x01R\x01M\x010\x02",
            "SubBefore\x01 5\x01r\x01g\x01R\x01M\x010\x02",
            "SubBefore\x015\n\x01r\x01g\x01R\x01M\x010\x02",
            "SubBefore\x01٣\x01r\x01g\x01R\x01M\x010\x02",
            "SubBefore\x01--5\x01r\x01g\x01R\x01M\x010\x02",
            "Pub\x02",
            "pub\x011\x02",
            "\x01\x01\x02",
            "just text, " * 100,
            f"{pub}\x01true\x02 rest without an end".encode(),
            b"Recall\x011\x01\xff\xfe\x01\xe4\xb8\x01\xf0\x9f\x98\x01m\x01true\x02",
            "Recall\x011\x01r\x01组\x01主题😀\x01m\x01True\x02",
        )
    ]


def mangled_bodies(count: int) -> list[bytes]:
    """Valid bodies with bytes replaced, removed and inserted, on a seed."""
    luck = random.Random(SEED)
    good = encode_trace(sample_records())
    pool = [
        b"\x01",
        b"\x02",
        b"null",
        b"SubAfter",
        b"Pub",
        b"-",
        b"7",
        b"\xff",
        b"\x01\x01",
        b"true",
    ]
    bodies = []
    for _ in range(count):
        body = bytearray(good)
        for _ in range(luck.randint(1, 6)):
            place = luck.randrange(len(body))
            body[place : place + luck.choice((0, 1, 1, 20))] = luck.choice(pool)
        bodies.append(bytes(body))
    return bodies


def recorded_bodies() -> list[bytes]:
    """Bodies written by Java clients; see tests/unit/trace/test_recorded_traces.py."""
    files = sorted(RECORDED.glob("*.jsonl"))
    assert files
    lines = [line for file in files for line in file.read_text().splitlines()]
    return [json.loads(line).encode() for line in lines]


@pytest.mark.usefixtures("form")
def test_columns_hold_the_records_of_the_codec() -> None:
    bodies = [encode_trace(sample_records()), *old_and_odd_bodies(), *recorded_bodies()]
    bodies += mangled_bodies(300)
    for place, events in decoded(bodies).items():
        check_same(bodies[place], events)


def test_the_compiled_scan_and_plain_python_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [*old_and_odd_bodies(), *recorded_bodies(), *mangled_bodies(1000)]
    read = [decode_trace(body) for body in bodies]
    monkeypatch.setattr(codec, "scan", plain_module("trace.scan"))
    for body, expected in zip(bodies, read, strict=True):
        assert decode_trace(body) == expected, body


@pytest.mark.usefixtures("form")
def test_every_variant_is_read_as_documented() -> None:
    """Independent of the scan: the number of records and the success of known bodies."""
    pub = "Pub\x011762300000000\x01r\x01g\x01t\x01m\x01null\x01k\x01h\x0112\x013\x010"
    after = "SubAfter\x01R\x01M\x014\x01true\x01k\x010"
    for text, kinds in {
        f"{pub}\x01true\x02": ["Pub"],
        f"{pub}\x01offset\x01TRUE\x01host\x01later\x01fields\x02": ["Pub"],
        f"{after}\x01{after}\x01{after}\x01": ["SubAfter"] * 3,
        f"{after}\x01{pub}\x01true\x02": ["SubAfter", "Pub"],
        f"{after}\x01Pub\x02": ["SubAfter", BROKEN],
        f"{after}\x01SubBeforeX\x01g\x02": [BROKEN],
        "SubBefore\x019223372036854775807\x01r\x01g\x01R\x01M\x010\x02": ["SubBefore"],
        "SubBefore\x01-9223372036854775808\x01r\x01g\x01R\x01M\x010\x02": ["SubBefore"],
        "SubBefore\x019223372036854775808\x01r\x01g\x01R\x01M\x010\x02": [BROKEN],
        "SubBefore\x01-9223372036854775809\x01r\x01g\x01R\x01M\x010\x02": [BROKEN],
    }.items():
        events = decoded([text.encode()])[0]
        assert [event["kind"] for event in events] == kinds, text
        assert all(event["success"] for event in events if event["kind"] in {"Pub", "SubAfter"})


def test_events_have_the_declared_columns_in_order() -> None:
    empty = decode_events(messages_of([]))
    assert empty.schema.names == list(EVENTS.names)
    assert empty.schema == arrow_schema(EVENTS)


def test_an_implausible_timestamp_is_replaced_by_the_store_time() -> None:
    event_ms_by_clock = {NOW_MS - 3600_000: NOW_MS - 3600_000, 0: NOW_MS, -(2**63): NOW_MS}
    event_ms_by_clock[2**63 - 1] = NOW_MS
    bodies = [
        encode_trace([SubBefore(timestamp_ms=clock, group="g", request_id="R", msg_id="M")])
        for clock in event_ms_by_clock
    ]
    found = {
        events[0]["timestamp_ms"]: events[0]["event_ms"] for events in decoded(bodies).values()
    }
    assert found == event_ms_by_clock


def test_a_slice_of_messages_is_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a slice must not grow with the batch that the slice is part of."""
    bodies = [*old_and_odd_bodies(), *mangled_bodies(100)]
    whole = messages_of(bodies)
    events = decode_events(whole).to_pylist()
    lengths = []

    def scan_bodies(data: Any, *arrays: Any) -> int:
        lengths.append(len(data))
        return scan_bodies_before(data, *arrays)

    scan_bodies_before = scan.scan_bodies
    monkeypatch.setattr(scan, "scan_bodies", scan_bodies)
    for begin in range(0, len(bodies), 10):
        part = range(begin, min(begin + 10, len(bodies)))
        expected = [event for event in events if event["queue_offset"] in part]
        assert decode_events(whole.slice(begin, 10)).to_pylist() == expected
    replaced = [body.decode("utf-8", "replace").encode() for body in bodies]
    assert sum(lengths) == sum(map(len, replaced))


@pytest.mark.usefixtures("form")
def test_hashes_are_fnv_1a_of_64_bits() -> None:
    """The lake stores the hashes, so they must never change; the values are of the definition."""
    texts = {b"": 0xCBF29CE484222325, b"a": 0xAF63DC4C8601EC8C, b"foobar": 0x85944171F73967E8}
    ends = list(accumulate(map(len, texts), initial=0))
    hashes = array("Q", bytes(8 * len(texts)))
    scan.hash_texts(b"".join(texts), memoryview(array("i", ends)), memoryview(hashes))
    assert list(hashes) == list(texts.values())
