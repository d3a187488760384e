"""Ext fields of C++ and Node clients, and typed headers."""

import json

import pytest

from core_broker.errors import ProtocolError
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.ext_fields import decode_fields, encode_fields
from core_broker.remoting.headers import (
    ConsumerSendMsgBackRequestHeader,
    QueryConsumerOffsetRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
    UnregisterClientRequestHeader,
)
from tests.unit.remoting.test_command import frame


def command(fields: str) -> RemotingCommand:
    return RemotingCommand.decode(frame('{"code":1,"extFields":' + fields + "}"))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"true"', True),
        ('"TRUE"', True),
        ('"True"', True),
        ("true", True),
        ('"false"', False),
        ("false", False),
        ('"1"', False),
        ('"0"', False),
        ("1", False),
        ("0", False),
        ('"yes"', False),
        ('""', False),
        ("1.0", False),
    ],
)
def test_booleans_are_true_only_for_the_text_true(written: str, value: bool) -> None:
    fields = f'{{"offset":"1","group":"G","delayLevel":"0","unitMode":{written}}}'
    for request in (command(fields), command(fields)):
        assert request.header(ConsumerSendMsgBackRequestHeader).unit_mode is value
    assert request.ext_fields  # decodes by the slow path
    assert request.header(ConsumerSendMsgBackRequestHeader).unit_mode is value


def test_an_absent_optional_boolean_is_none() -> None:
    fields = '{"consumerGroup":"G","topic":"T","queueId":"0"'
    kind = QueryConsumerOffsetRequestHeader
    assert command(fields + "}").header(kind).set_zero_if_not_found is None
    with_null = command(fields + ',"setZeroIfNotFound":null}')
    assert with_null.header(kind).set_zero_if_not_found is None
    with_false = command(fields + ',"setZeroIfNotFound":"false"}')
    assert with_false.header(kind).set_zero_if_not_found is False


def test_bare_numbers_and_booleans_are_read_as_text() -> None:
    request = command('{"d":4,"k":false,"x":null,"t":true,"s":"a\\u0001b","o":{"a":[1]},"f":1.50}')
    assert request.ext_fields == {
        "d": "4",
        "k": "false",
        "t": "true",
        "s": "a\x01b",
        "o": '{"a":[1]}',
        "f": "1.50",
    }


@pytest.mark.parametrize("fields", ["[]", "3", '"text"'])
def test_null_and_missing_ext_fields(fields: str) -> None:
    request = command(fields)
    with pytest.raises(ProtocolError):
        request.header(UnregisterClientRequestHeader)
    with pytest.raises(ProtocolError):
        _ = request.ext_fields


@pytest.mark.parametrize(
    ("offset", "problem"),
    [
        ('"abc"', "offset"),
        ('""', "offset"),
        ('"9223372036854775808"', "offset"),
        ("null", "offset"),
        ('"' + "9" * 5000 + '"', "offset"),
    ],
)
def test_malformed_numbers(offset: str, problem: str) -> None:
    request = command(f'{{"offset":{offset},"group":"G","delayLevel":"0"}}')
    with pytest.raises(ProtocolError, match=problem):
        request.header(ConsumerSendMsgBackRequestHeader)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("007", 7),
        ("+7", 7),
        ("-07", -7),
        ("+0", 0),
        ("-0", 0),
        ("0" * 5000 + "7", 7),
        ("\N{ARABIC-INDIC DIGIT THREE}\N{DEVANAGARI DIGIT FOUR}", 34),
        ("+9223372036854775807", 2**63 - 1),
        ("-09223372036854775808", -(2**63)),
    ],
)
def test_numbers_are_read_as_javas_parselong_reads_them(text: str, value: int) -> None:
    fields = {"offset": text, "group": "G", "delayLevel": "+03", "maxReconsumeTimes": "016"}
    in_json = command(json.dumps(fields)).header(ConsumerSendMsgBackRequestHeader)
    for header in (in_json, decode_fields(ConsumerSendMsgBackRequestHeader, fields)):
        assert (header.offset, header.delay_level) == (value, 3)
        assert header.max_reconsume_times == 16


@pytest.mark.parametrize(
    "text",
    [
        *("", " 7", "7 ", "7\n", "1_000", "+", "-", "+-7", "--7", "7-", "0x7", "7L", "seven"),
        *("1.0", "1e3", "1E3", "1.", "\N{SUPERSCRIPT TWO}", "\N{MATHEMATICAL BOLD DIGIT SEVEN}"),
        *("9223372036854775808", "-9223372036854775809", "+09223372036854775808"),
    ],
)
def test_numbers_that_javas_parselong_refuses(text: str) -> None:
    fields = {"offset": text, "group": "G", "delayLevel": "0"}
    with pytest.raises(ProtocolError, match="offset"):
        command(json.dumps(fields)).header(ConsumerSendMsgBackRequestHeader)
    with pytest.raises(ProtocolError, match="offset"):
        decode_fields(ConsumerSendMsgBackRequestHeader, fields)


@pytest.mark.parametrize("level", ["+2147483648", "-02147483649", "1.0"])
def test_numbers_of_32_bits_have_the_range_of_javas_parseint(level: str) -> None:
    with pytest.raises(ProtocolError, match="delayLevel"):
        command(f'{{"offset":"1","group":"G","delayLevel":"{level}"}}').header(
            ConsumerSendMsgBackRequestHeader
        )


@pytest.mark.parametrize("number", ["1.0", "1e3", "1E3 ", "true"])
def test_bare_numbers_follow_the_same_rule(number: str) -> None:
    with pytest.raises(ProtocolError, match="offset"):
        command(f'{{"group":"G","delayLevel":0,"offset":{number}}}').header(
            ConsumerSendMsgBackRequestHeader
        )


def test_a_missing_required_field_is_named() -> None:
    with pytest.raises(ProtocolError, match=r"ConsumerSendMsgBackRequestHeader.*group"):
        command('{"offset":"1","delayLevel":"0"}').header(ConsumerSendMsgBackRequestHeader)
    with pytest.raises(ProtocolError, match="clientID"):
        RemotingCommand.request(35).header(UnregisterClientRequestHeader)


def test_a_number_for_a_string_is_its_text() -> None:
    header = command('{"clientID":17,"producerGroup":""}').header(UnregisterClientRequestHeader)
    assert header.client_id == "17"
    assert header.producer_group == ""


def test_both_send_headers_have_the_same_attributes() -> None:
    values = {"a": "PG", "b": "T", "c": "TBW102", "d": "4", "e": "-1", "f": "0", "g": "5", "h": "0"}
    short = decode_fields(SendMessageRequestHeaderV2, {**values, "m": "true", "n": "broker-a"})
    assert isinstance(short, SendMessageRequestHeader)
    assert short.to_v1() is short
    assert (short.topic, short.queue_id, short.batch, short.broker_name) == (
        "T",
        -1,
        True,
        "broker-a",
    )
    assert encode_fields(short)["m"] == "true"
    assert (
        SendMessageRequestHeader.__struct_fields__ == SendMessageRequestHeaderV2.__struct_fields__
    )


def test_none_is_absent_and_booleans_are_words() -> None:
    header = SendMessageResponseHeader(msg_id="X", queue_id=1, queue_offset=2**40, trace_on=True)
    assert encode_fields(header) == {
        "msgId": "X",
        "queueId": "1",
        "queueOffset": "1099511627776",
        "TRACE_ON": "true",
    }
