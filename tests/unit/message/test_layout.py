"""Layouts: offsets, selections and dtypes derived from a table."""

import struct

import pytest

from core_broker.message.layout import Layout
from core_broker.message.record_layout import HEAD, HEADS
from core_broker.message.sysflag import BORN_HOST_V6, STORE_HOST_V6
from core_broker.store.checkpoint import CHECKPOINT
from core_broker.store.index_layout import HEADER_LAYOUT, ITEM_LAYOUT
from core_broker.store.unit_layout import UNIT_LAYOUT

TABLE = Layout(("size", "I"), ("short", "H"), ("host", "4s"), ("port", "i"), ("time", "q"))


def test_the_formats_are_rocketmqs() -> None:
    assert HEAD.struct.format == ">IIIiiqqiq4siq4siiqI"
    assert [HEADS[flag].size for flag in (0, BORN_HOST_V6, STORE_HOST_V6)] == [88, 100, 100]
    assert HEADS[BORN_HOST_V6 | STORE_HOST_V6].struct.format == ">IIIiiqqiq16siq16siiqI"
    assert UNIT_LAYOUT.struct.format == ">qiq"
    assert HEADER_LAYOUT.struct.format == ">qqqqii"
    assert ITEM_LAYOUT.struct.format == ">iqii"
    assert CHECKPOINT.struct.format == ">qqqqq"


def test_offsets_and_indexes_follow_the_order_of_the_fields() -> None:
    assert [field.offset for field in TABLE.fields] == [0, 4, 6, 10, 14]
    assert (TABLE.at("port"), TABLE.index("port"), TABLE.size) == (10, 3, 22)


def test_a_selection_skips_the_other_fields() -> None:
    data = TABLE.struct.pack(1, 2, b"host", 3, 4)
    assert TABLE.select("size", "port").unpack_from(data) == (1, 3)
    assert TABLE.select("short", "host").unpack_from(data) == (2, b"host")
    assert TABLE.select("size").size == 4
    with pytest.raises(ValueError, match="size is selected out of order"):
        TABLE.select("port", "size")


def test_a_numpy_dtype_reads_what_the_struct_wrote() -> None:
    numpy = pytest.importorskip("numpy")
    rows = numpy.frombuffer(TABLE.struct.pack(1, 2, b"host", -3, 4), TABLE.numpy_fields())
    assert rows.dtype.itemsize == TABLE.size == struct.calcsize(TABLE.struct.format)
    assert rows["port"].tolist() == [-3]
    assert rows["host"][0].tobytes() == b"host"
