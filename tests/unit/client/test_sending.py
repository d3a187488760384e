"""Send requests: checks, unique keys, compression, batches, and answers."""

import zlib

import pytest

from core_broker.client.results import SendStatus
from core_broker.client.sending import (
    Outgoing,
    check_message,
    prepare,
    prepare_batch,
    read_send_answer,
)
from core_broker.errors import ClientError, RequestRefused
from core_broker.limits import MESSAGE_BYTES_MAX
from core_broker.message.batch import decode_batch
from core_broker.message.model import Message
from core_broker.message.properties import decode_properties
from core_broker.remoting.bodies import MessageQueue
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import SendMessageRequestHeaderV2

QUEUE = MessageQueue("T", "b", 3)


def header(outgoing: Outgoing) -> SendMessageRequestHeaderV2:
    command = outgoing.request(QUEUE, group="PG", now_ms=11)
    return command.header(SendMessageRequestHeaderV2)


def test_a_message_as_it_goes_out() -> None:
    message = Message("T", b"hi", tags="A", keys=["k1", "k2"], flag=5, properties={"u": "v"})
    outgoing = prepare(message, "KEY")
    command = outgoing.request(QUEUE, group="PG", now_ms=11)
    assert command.code == RequestCode.SEND_MESSAGE_V2
    assert command.body == b"hi"
    fields = command.ext_fields
    assert (fields["a"], fields["b"], fields["c"], fields["d"]) == ("PG", "T", "TBW102", "4")
    assert (fields["e"], fields["f"], fields["g"], fields["h"]) == ("3", "0", "11", "5")
    assert (fields["j"], fields["k"], fields["m"], fields["n"]) == ("0", "false", "false", "b")
    assert decode_properties(fields["i"]) == {
        "UNIQ_KEY": "KEY",
        "KEYS": "k1 k2",
        "TAGS": "A",
        "WAIT": "true",
        "u": "v",
    }
    assert "UNIQ_KEY" not in message.properties


def test_a_unique_key_that_is_there_is_kept() -> None:
    outgoing = prepare(Message("T", b"hi", properties={"UNIQ_KEY": "FIRST"}), "KEY")
    assert outgoing.msg_id == "FIRST"


def test_a_large_body_is_compressed() -> None:
    assert prepare(Message("T", b"x" * 4095), "KEY").sys_flag == 0
    outgoing = prepare(Message("T", b"x" * 4096), "KEY")
    assert outgoing.sys_flag == 0x301
    assert zlib.decompress(outgoing.body) == b"x" * 4096
    assert header(outgoing).sys_flag == 0x301


def test_a_copy_for_the_retry_topic_tells_its_count_in_the_header() -> None:
    message = Message(
        "%RETRY%G", b"hi", properties={"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "16"}
    )
    sent = header(prepare(message, "KEY"))
    assert (sent.reconsume_times, sent.max_reconsume_times) == (3, 16)
    assert decode_properties(sent.properties) == {"UNIQ_KEY": "KEY", "WAIT": "true"}


def test_a_count_that_is_no_number_is_no_count() -> None:
    message = Message("%RETRY%G", b"hi", properties={"RECONSUME_TIME": "many"})
    assert header(prepare(message, "KEY")).reconsume_times == 0


@pytest.mark.parametrize(
    "message",
    [
        Message("", b"hi"),
        Message("no blanks", b"hi"),
        Message("T" * 128, b"hi"),
        Message("SCHEDULE_TOPIC_XXXX", b"hi"),
        Message("T", b""),
        Message("T", b"x" * (MESSAGE_BYTES_MAX + 1)),
    ],
    ids=["blank", "characters", "long", "forbidden", "empty", "large"],
)
def test_what_no_broker_takes_is_refused_here(message: Message) -> None:
    with pytest.raises(ClientError):
        check_message(message)


def test_properties_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ClientError, match="32767"):
        prepare(Message("T", b"hi", properties={"p": "ä" * 17_000}), "KEY")


def test_a_batch() -> None:
    messages = [Message("T", b"one", tags="A"), Message("T", b"two", keys="k")]
    outgoing = prepare_batch(messages, ["K1", "K2"])
    command = outgoing.request(QUEUE, group="PG", now_ms=11)
    assert command.code == RequestCode.SEND_BATCH_MESSAGE
    assert command.ext_fields["m"] == "true"
    assert decode_properties(command.ext_fields["i"]) == {"WAIT": "true"}
    assert outgoing.msg_id == "K1,K2"
    first, second = decode_batch(command.body)
    assert (first.body, first.properties["UNIQ_KEY"], first.properties["TAGS"]) == (
        b"one",
        "K1",
        "A",
    )
    assert (second.body, second.properties["KEYS"]) == (b"two", "k")


def test_a_batch_keeps_wait_store_ok() -> None:
    outgoing = prepare_batch([Message("T", b"one", wait_store_ok=False)], ["K1"])
    assert decode_properties(outgoing.properties) == {"WAIT": "false"}
    (message,) = decode_batch(outgoing.body)
    assert message.properties["WAIT"] == "false"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [Message("T", b"1"), Message("U", b"2")],
        [Message("T", b"1"), Message("T", b"2", wait_store_ok=False)],
        [Message("T", b"1", delay_level=1)],
        [Message("%RETRY%G", b"1")],
        [Message("T", b"1"), Message("T", b"")],
        [Message("T", b"x" * (MESSAGE_BYTES_MAX // 2))] * 2,
        [Message("T", b"1", properties={"p": "v" * 70_000})],
    ],
    ids=["none", "topics", "waits", "delay", "retry", "empty", "large", "properties"],
)
def test_batches_that_cannot_be(messages: list[Message]) -> None:
    with pytest.raises(ClientError):
        prepare_batch(messages, [f"K{number}" for number in range(len(messages))])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, SendStatus.SEND_OK),
        (10, SendStatus.FLUSH_DISK_TIMEOUT),
        (11, SendStatus.SLAVE_NOT_AVAILABLE),
        (12, SendStatus.FLUSH_SLAVE_TIMEOUT),
    ],
)
def test_answers_that_mean_stored(code: int, status: SendStatus) -> None:
    fields = {"msgId": "OFFSET", "queueId": "1", "queueOffset": "9", "TRACE_ON": "false"}
    answer = RemotingCommand.response(code, None, fields)
    result = read_send_answer(answer, "h:1", prepare(Message("T", b"hi"), "KEY"), QUEUE)
    assert result.status is status
    assert (result.msg_id, result.offset_msg_id, result.queue_offset) == ("KEY", "OFFSET", 9)
    assert result.queue == MessageQueue("T", "b", 1)
    assert not result.trace_on


def test_any_other_answer_is_a_refusal() -> None:
    answer = RemotingCommand.response(13, "too large")
    with pytest.raises(RequestRefused, match="too large") as caught:
        read_send_answer(answer, "h:1", prepare(Message("T", b"hi"), "KEY"), QUEUE)
    assert (caught.value.code, caught.value.addr) == (13, "h:1")
