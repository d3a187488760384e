"""The JSON dialect of fastjson, and hostile JSON."""

import pytest

from core_broker.errors import ProtocolError
from core_broker.remoting.bodies import MessageQueue, ResetOffsetBody, TopicRouteData
from core_broker.remoting.bodies.route import BrokerData
from core_broker.remoting.fastjson import DEPTH_MAX, Dialect, FrozenObject, dumps, loads


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1}', {"a": 1}),
        ("{a:1,'b':'x',\"c\":true}", {"a": 1, "b": "x", "c": True}),
        ('{0:"10.0.0.1:10911",1:"x"}', {"0": "10.0.0.1:10911", "1": "x"}),
        ("{-1:2}", {"-1": 2}),
        ("[1,2,]", [1, 2]),
        ("{,a:1,,b:2,}", {"a": 1, "b": 2}),
        (" \n[ 1 , -2.5e3 , false , null ]\t", [1, -2500.0, False, None]),
        ('{"a":null,"b":{}}', {"b": {}}),
        (r'"\u0001\n\t\/\"\'\x41\\"', "\x01\n\t/\"'A\\"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\ud83dx\ude00"', "\ufffdx\ufffd"),
        (r'"\ud83d\u0041"', "\ufffd\ufffd"),
        ('"it\'s"', "it's"),
        ("'say \"x\"'", 'say "x"'),
        ("true", True),
        ("-0", 0),
        ('{"a":1,"a":2}', {"a": 2}),
        ('{"a":1,"a":null}', {}),
    ],
)
def test_reading(text: str, value: object) -> None:
    assert loads(text) == value
    assert loads(text.encode()) == value


def test_object_keys() -> None:
    table = loads('{{"queueId":0,"topic":"T"}:12,{"topic":"T","queueId":1}:7}')
    key = FrozenObject({"topic": "T", "queueId": 1})
    assert table[key] == 7
    assert len(table) == 2
    assert dict(key) == {"topic": "T", "queueId": 1}
    assert key != {"topic": "T"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "{",
        "[",
        "[1",
        "{a",
        "{a:",
        "{a:1",
        "{:1}",
        "{a 1}",
        "}",
        "1 2",
        "nul",
        "undefined",
        '"open',
        "'open",
        '"\\',
        '"\\u12"',
        '"\\u12G4"',
        '"\\q"',
        '"\\x"',
        "{[1]:2}",
        '{{"a":[1]}:2}',
        "{{}",
        "1.2.3",
        "9" * 500,
        "-",
        "\x00",
        "[" * (DEPTH_MAX + 2) + "]" * (DEPTH_MAX + 2),
        "[" * 100_000,
        "{" * 100_000,
        '{"a":' * 100_000,
        "{a:" * 100_000,
    ],
)
def test_text_outside_of_the_dialect(text: str) -> None:
    with pytest.raises(ProtocolError):
        loads(text)


def test_bytes_that_are_not_utf8() -> None:
    with pytest.raises(ProtocolError):
        loads(b'{"a":"\xff"}')


def test_depth_up_to_the_limit() -> None:
    value = loads("[" * DEPTH_MAX + "]" * DEPTH_MAX)
    for _ in range(DEPTH_MAX - 1):
        (value,) = value
    assert value == []


def test_number_keys_by_dialect() -> None:
    broker = BrokerData(broker_name="b", cluster="c", broker_addrs={0: "10.0.0.1:1", 1: "x"})
    assert dumps(broker) == (
        b'{"brokerAddrs":{"0":"10.0.0.1:1","1":"x"},"brokerName":"b","cluster":"c"}'
    )
    assert dumps(broker, Dialect.FASTJSON).startswith(b'{"brokerAddrs":{0:"10.0.0.1:1",1:"x"},')


@pytest.mark.parametrize("dialect", Dialect)
def test_object_keys_have_one_form(dialect: Dialect) -> None:
    body = ResetOffsetBody(offset_table={MessageQueue("T", "b", 0): 12})
    assert dumps(body, dialect) == (
        b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:12}}'
    )


def test_members_are_sorted_and_absent_members_omitted() -> None:
    assert dumps(TopicRouteData()) == b'{"brokerDatas":[],"filterServerTable":{},"queueDatas":[]}'
    route = TopicRouteData(order_topic_conf="b:8")
    assert b'"orderTopicConf":"b:8"' in dumps(route)


def test_scalars_and_sets() -> None:
    assert dumps({"t": True, "f": 0.0, "n": None, "s": {"b", "a"}, "x": ("é", '\x01"')}) == (
        '{"t":true,"f":0.0,"n":null,"s":["a","b"],"x":["é","\\u0001\\""]}'.encode()
    )


def test_half_a_surrogate_pair_does_not_stop_an_answer() -> None:
    assert dumps({"jstack\ud800": "\udc80"}) == b'{"jstack?":"?"}'
