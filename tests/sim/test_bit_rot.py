"""One flipped bit in each field of a record in the middle of the log.

The broker starts and serves all other records; the damaged record is reported and not served, and
no file is deleted.
"""

from pathlib import Path

import pytest

from core_broker.message.model import MessageExt
from core_broker.message.record import decode_record
from core_broker.message.record_layout import (
    BODY_CRC_AT,
    BODY_LENGTH_AT,
    BORN_TIMESTAMP_AT,
    FLAG_AT,
    HEAD,
    MAGIC_AT,
    PHYSICAL_OFFSET_AT,
    QUEUE_ID_AT,
    QUEUE_OFFSET_AT,
    RECONSUME_TIMES_AT,
    STORE_HOST_AT,
    STORE_TIMESTAMP_AT,
    SYS_FLAG_AT,
)
from core_broker.store import GetStatus
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import SEGMENT_BYTES, Bench, message, warmed

ROOT = Path("/store")
LOG = ROOT / "commitlog" / f"{0:020d}"
COUNT = 20
ROTTEN = 10
#: Another queue: damage must not affect its messages.
OTHER_QUEUE = 1
BODY_AT = HEAD.size
TOPIC_AT = BODY_AT + len(b"message 00")
PROPERTIES_AT = TOPIC_AT + 1 + len("TopicTest")
#: Name → bytes of the record, and whether damage is detectable, by checksum or lengths. A damaged
#: store time or host looks valid.
FIELDS: dict[str, tuple[range, bool]] = {
    "size": (range(MAGIC_AT), True),
    "magic": (range(MAGIC_AT, BODY_CRC_AT), True),
    "body checksum": (range(BODY_CRC_AT, QUEUE_ID_AT), True),
    "queue id": (range(QUEUE_ID_AT, FLAG_AT), True),
    "flag": (range(FLAG_AT, QUEUE_OFFSET_AT), False),
    "queue offset": (range(QUEUE_OFFSET_AT, PHYSICAL_OFFSET_AT), True),
    "physical offset": (range(PHYSICAL_OFFSET_AT, SYS_FLAG_AT), True),
    "system flag, host kinds": (range(BORN_TIMESTAMP_AT - 1, BORN_TIMESTAMP_AT), True),
    "born time and host": (range(BORN_TIMESTAMP_AT, STORE_TIMESTAMP_AT), False),
    "store host": (range(STORE_HOST_AT, RECONSUME_TIMES_AT), False),
    "reconsume times, prepared offset": (range(RECONSUME_TIMES_AT, BODY_LENGTH_AT), False),
    "body length": (range(BODY_LENGTH_AT, BODY_AT), True),
    "body": (range(BODY_AT, TOPIC_AT), True),
    "topic length": (range(TOPIC_AT, TOPIC_AT + 1), True),
    "topic": (range(TOPIC_AT + 1, PROPERTIES_AT), True),
    "properties length": (range(PROPERTIES_AT, PROPERTIES_AT + 2), True),
}
#: The bits of the system flag for the length of the hosts.
HOST_KIND_BITS = (4, 5)


def filled(end: str) -> tuple[SimulatedFiles, int]:
    """A disk with a store that ended in the given way, and the offset of the record to damage."""
    files = SimulatedFiles(1)
    bench = Bench(ROOT, files, flush_disk_type="SYNC_FLUSH").open()
    at = 0
    for number in range(COUNT):
        (result,) = bench.put(message(number, body=b"message %02d" % number))
        if number == ROTTEN:
            at = result.offset_physical
        bench.put(message(number, queue_id=OTHER_QUEUE))
    bench.store.on_flushed(bench.store.max_offset_physical, lambda is_flushed: None)
    bench.run_io()
    if end == "killed":
        files.kill()
    elif end == "without power":
        files.power_cut()
    else:
        bench.store.close()
    if end == "rebuilt":
        files.remove_tree(ROOT / "consumequeue")
        files.remove_tree(ROOT / "index")
    return files, at


def read(bench: Bench, queue_id: int) -> list[MessageExt]:
    """Read a queue as a consumer does, skipping unreadable offsets."""
    store = bench.store
    found: list[MessageExt] = []
    offset, end = store.queue_range("TopicTest", queue_id)
    while offset < end:
        at = offset
        result = warmed(store, lambda at=at: store.get("TopicTest", queue_id, at, 32))  # type: ignore[misc]
        if result.status is GetStatus.FOUND:
            found += [decode_record(each, check_crc=True) for each in result.records]
        assert result.next_offset > offset
        offset = result.next_offset
    return found


@pytest.mark.parametrize("end", ["killed", "without power", "stopped", "rebuilt"])
@pytest.mark.parametrize("field", FIELDS)
def test_reliability_05_bit_rot_in_the_middle(
    field: str, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    span, is_noticed = FIELDS[field]
    bits = HOST_KIND_BITS if field.startswith("system flag") else (0, 3, 7)
    for byte in span:
        for bit in bits:
            files, at = filled(end)
            files.flip_bit(LOG, at + byte, bit)
            before = files.open(LOG).pread(SEGMENT_BYTES, 0)
            bench = Bench(ROOT, files).open()
            case = (field, byte, bit)
            check(bench, is_noticed, case)
            assert files.open(LOG).pread(SEGMENT_BYTES, 0) == before, f"deleted: {case}"
            bench.store.close()
    if is_noticed:
        assert "/00000000000000000000 is damaged at" in caplog.text


def check(bench: Bench, is_noticed: bool, case: object) -> None:
    found = read(bench, 0)
    numbers = [int(each.body.split()[1]) for each in found]
    sound = [number for number in range(COUNT) if number != ROTTEN]
    assert [each for each in numbers if each != ROTTEN] == sound, case
    assert [each.queue_offset for each in found] == numbers, case
    assert len(read(bench, OTHER_QUEUE)) == COUNT, case
    assert (ROTTEN in numbers) is not is_noticed, case
    assert (bench.store.stats().damaged_places > 0) is is_noticed, case
