"""Packed arrays: what was put in comes out, small; aggregates skip gaps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.services.history.blocks import Damaged, pack, reduced, rounded, unpack

values = st.lists(
    st.one_of(st.just(math.nan), st.floats(0, 2.0**53, allow_nan=False)), min_size=4, max_size=64
)


@given(values)
def test_exact_values_and_gaps_come_out_as_they_went_in(found: list[float]) -> None:
    array = np.array(found)
    np.testing.assert_array_equal(unpack(pack(array, exact=True), (-1,), exact=True), array)


@given(values)
def test_rounded_values_are_within_their_error_and_gaps_stay_gaps(found: list[float]) -> None:
    array = np.array(found)
    read = unpack(pack(array, exact=False), (-1,), exact=False)
    np.testing.assert_array_equal(np.isnan(read), np.isnan(array))
    known = ~np.isnan(array) & (array > 1e-30)
    np.testing.assert_allclose(read[known], array[known], rtol=0.00025)
    np.testing.assert_array_equal(rounded(array), read)


def test_values_that_do_not_change_take_almost_no_space() -> None:
    idle = np.zeros((16, 360))
    steady = np.full((16, 360), 1234.5)
    assert len(pack(idle, exact=True)) < 100
    assert len(pack(steady, exact=False)) < 200


@pytest.mark.parametrize("data", [b"", b"not zlib", pack(np.zeros(7), exact=True)[:-3]])
def test_damaged_arrays_are_reported(data: bytes) -> None:
    with pytest.raises(Damaged):
        unpack(data, (-1,), exact=True)


def test_an_array_of_another_shape_is_damaged() -> None:
    with pytest.raises(Damaged):
        unpack(pack(np.zeros(7), exact=True), (2, 4), exact=True)


def test_aggregates_skip_gaps_and_are_gaps_where_all_are() -> None:
    nan = math.nan
    parts = np.array([1.0, nan, 3.0, nan, nan, nan, 5.0, 2.0, nan])
    found = reduced(parts, 3, ("avg", "min", "max", "last"))
    np.testing.assert_array_equal(found["avg"], [2.0, nan, 3.5])
    np.testing.assert_array_equal(found["min"], [1.0, nan, 2.0])
    np.testing.assert_array_equal(found["max"], [3.0, nan, 5.0])
    np.testing.assert_array_equal(found["last"], [3.0, nan, 2.0])
