"""client/admin/tables.py: tables of brokers are decoded once per content."""

import pytest
from msgspec import Struct

from core_broker.client.admin.tables import DecodedTables
from core_broker.errors import ProtocolError
from core_broker.remoting.codes import RequestCode

TOPICS, GROUPS = RequestCode.GET_TOPIC_INVENTORY, RequestCode.GET_GROUP_INVENTORY


class Table(Struct):
    names: list[str]


def test_equal_bytes_are_the_same_object_and_other_bytes_another() -> None:
    tables = DecodedTables()
    first = tables.decoded(Table, "a:1", TOPICS, b'{"names": ["x"]}')
    assert tables.decoded(Table, "a:1", TOPICS, b'{"names": ["x"]}') is first
    changed = tables.decoded(Table, "a:1", TOPICS, b'{"names": ["y"]}')
    assert (first.names, changed.names) == (["x"], ["y"])
    again = tables.decoded(Table, "a:1", TOPICS, b'{"names": ["x"]}')
    assert again.names == ["x"]
    assert len(tables) == 1, "only the last answer is kept"


def test_brokers_and_requests_have_tables_of_their_own() -> None:
    tables = DecodedTables()
    body = b'{"names": []}'
    found = [
        tables.decoded(Table, addr, code, body)
        for addr in ("a:1", "b:1")
        for code in (TOPICS, GROUPS)
    ]
    assert len({id(each) for each in found}) == 4


def test_a_body_that_cannot_be_decoded_leaves_the_last_table() -> None:
    tables = DecodedTables()
    first = tables.decoded(Table, "a:1", TOPICS, b'{"names": ["x"]}')
    with pytest.raises(ProtocolError):
        tables.decoded(Table, "a:1", TOPICS, b'{"names": 7}')
    assert tables.decoded(Table, "a:1", TOPICS, b'{"names": ["x"]}') is first


def test_the_tables_unused_for_longest_are_dropped() -> None:
    tables = DecodedTables(tables_max=2)
    body = b'{"names": []}'
    first, second = (tables.decoded(Table, addr, TOPICS, body) for addr in ("a:1", "b:1"))
    assert tables.decoded(Table, "a:1", TOPICS, body) is first
    tables.decoded(Table, "c:1", TOPICS, body)
    assert len(tables) == 2
    assert tables.decoded(Table, "a:1", TOPICS, body) is first
    assert tables.decoded(Table, "b:1", TOPICS, body) is not second
