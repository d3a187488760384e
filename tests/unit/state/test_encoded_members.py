"""state/encoded_members.py: the text of any sequence of changes is the text of the table."""

import json
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from core_broker.remoting.bodies import DataVersion
from core_broker.state.encoded_members import CHUNK_ENTRIES, EncodedMembers

names = st.one_of(st.integers(0, 3 * CHUNK_ENTRIES).map(str), st.text(max_size=4))
changes = st.lists(st.tuples(st.sampled_from(["put", "put", "remove", "read"]), names))


def text(members: EncodedMembers[DataVersion]) -> object:
    return json.loads(b"{" + b"".join(members.parts()) + b"}")


@given(changes=changes, filled=st.integers(0, 3 * CHUNK_ENTRIES))
def test_the_text_follows_the_changes(changes: list[tuple[str, str]], filled: int) -> None:
    members = EncodedMembers[DataVersion]()
    expected: dict[str, int] = {}
    for number, (change, name) in enumerate(
        [*(("put", str(number)) for number in range(filled)), *changes]
    ):
        if change == "put":
            members.put(name, DataVersion(number))
            expected[name] = number
        elif change == "remove" and name in expected:
            members.remove(name)
            del expected[name]
        elif change == "read":
            members.parts()
    assert text(members) == {
        name: {"counter": 0, "timestamp": number} for name, number in expected.items()
    }


def test_unchanged_entries_are_not_encoded_again() -> None:
    members = EncodedMembers[DataVersion]()
    for number in range(20 * CHUNK_ENTRIES):
        members.put(str(number), DataVersion(number))
    members.parts()
    assert members.encoded == 20 * CHUNK_ENTRIES
    members.parts()
    members.put("7", DataVersion(8))
    members.parts()
    assert members.encoded == 21 * CHUNK_ENTRIES


def test_chunks_with_free_capacity_are_filled_again() -> None:
    members = EncodedMembers[DataVersion]()
    for _ in range(5):
        for number in range(3 * CHUNK_ENTRIES):
            members.put(str(number), DataVersion(number))
        assert len(members.parts()) == 3
        for number in range(3 * CHUNK_ENTRIES):
            members.remove(str(number))
        assert members.parts() == []


def test_repeated_changes_of_a_full_chunk_need_no_memory() -> None:
    members = EncodedMembers[DataVersion]()
    for number in range(CHUNK_ENTRIES):
        members.put(str(number), DataVersion(number))
    tracemalloc.start()
    try:
        for _ in range(10_000):
            members.remove("7")
            members.put("7", DataVersion(7))
        grown_bytes, _peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown_bytes < 20_000, f"{grown_bytes} bytes more after the changes"
    assert len(members.parts()) == 1
