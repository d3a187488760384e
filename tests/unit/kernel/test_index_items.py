"""Index items from the kernel and from Python: equal bytes, slots and blocks."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.fastpath import has_kernel
from core_broker.store.index_items import add_items as interpreted

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

BEGIN_MS = 1_700_000_000_000
entries = st.lists(
    st.tuples(
        st.integers(0, 2**31 - 1),
        st.integers(0, 2**62),
        st.one_of(
            st.integers(BEGIN_MS - 5000, BEGIN_MS + 10**7),
            st.integers(-(2**62), 2**62),
        ),
    ),
    max_size=40,
)


@given(entries=entries)
def test_both_enter_the_same(entries: list[tuple[int, int, int]]) -> None:
    from core_broker.kernel.index_items import add_items as compiled

    numbers = array("q", [number for entry in entries for number in entry])
    outcomes = []
    for add_items in (interpreted, compiled):
        slots = memoryview(bytearray(4 * 3000)).cast("i")
        tail, changed = bytearray(b"before"), bytearray(3)
        used = add_items(numbers, slots, 5, BEGIN_MS, tail, changed)
        outcomes.append((used, bytes(slots), bytes(tail), changed))
    assert outcomes[0] == outcomes[1]
