"""The ext fields of all recorded frames with a typed header."""

from typing import Any

import pytest

from core_broker.remoting import headers as h
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.ext_fields import encode_fields
from tests.wire.recorded import Recorded, recorded

REQUESTS: dict[int, type[h.Header]] = {
    10: h.SendMessageRequestHeader,
    11: h.PullMessageRequestHeader,
    12: h.QueryMessageRequestHeader,
    14: h.QueryConsumerOffsetRequestHeader,
    15: h.UpdateConsumerOffsetRequestHeader,
    17: h.CreateTopicRequestHeader,
    29: h.SearchOffsetRequestHeader,
    30: h.GetMaxOffsetRequestHeader,
    31: h.GetMinOffsetRequestHeader,
    32: h.GetEarliestMsgStoretimeRequestHeader,
    35: h.UnregisterClientRequestHeader,
    36: h.ConsumerSendMsgBackRequestHeader,
    37: h.EndTransactionRequestHeader,
    38: h.GetConsumerListByGroupRequestHeader,
    39: h.CheckTransactionStateRequestHeader,
    40: h.NotifyConsumerIdsChangedRequestHeader,
    100: h.PutKVConfigRequestHeader,
    101: h.GetKVConfigRequestHeader,
    103: h.RegisterBrokerRequestHeader,
    104: h.UnRegisterBrokerRequestHeader,
    105: h.GetRouteInfoRequestHeader,
    202: h.GetTopicStatsInfoRequestHeader,
    203: h.GetConsumerConnectionListRequestHeader,
    204: h.GetProducerConnectionListRequestHeader,
    205: h.WipeWritePermOfBrokerRequestHeader,
    207: h.DeleteSubscriptionGroupRequestHeader,
    208: h.GetConsumeStatsRequestHeader,
    215: h.DeleteTopicRequestHeader,
    216: h.DeleteTopicFromNamesrvRequestHeader,
    220: h.ResetOffsetRequestHeader,
    222: h.ResetOffsetRequestHeader,
    300: h.QueryTopicConsumeByWhoRequestHeader,
    307: h.GetConsumerRunningInfoRequestHeader,
    309: h.ConsumeMessageDirectlyResultRequestHeader,
    310: h.SendMessageRequestHeaderV2,
    315: h.ViewBrokerStatsDataRequestHeader,
    317: h.GetConsumeStatsInBrokerHeader,
    320: h.SendMessageRequestHeaderV2,
    321: h.QueryConsumeQueueRequestHeader,
    325: h.SendMessageRequestHeaderV2,
    326: h.ReplyMessageRequestHeader,
    327: h.AddWritePermOfBrokerRequestHeader,
    351: h.GetTopicConfigRequestHeader,
    361: h.PullMessageRequestHeader,
}
ANSWERS: dict[tuple[int, int], type[h.Header]] = {
    (10, 0): h.SendMessageResponseHeader,
    (11, 0): h.PullMessageResponseHeader,
    (11, 19): h.PullMessageResponseHeader,
    (11, 20): h.PullMessageResponseHeader,
    (11, 21): h.PullMessageResponseHeader,
    (12, 0): h.QueryMessageResponseHeader,
    (14, 0): h.QueryConsumerOffsetResponseHeader,
    (26, 0): h.GetBrokerConfigResponseHeader,
    (29, 0): h.SearchOffsetResponseHeader,
    (30, 0): h.GetMaxOffsetResponseHeader,
    (31, 0): h.GetMinOffsetResponseHeader,
    (32, 0): h.GetEarliestMsgStoretimeResponseHeader,
    (52, 0): h.GetBrokerAclConfigResponseHeader,
    (101, 0): h.GetKVConfigResponseHeader,
    (103, 0): h.RegisterBrokerResponseHeader,
    (205, 0): h.WipeWritePermOfBrokerResponseHeader,
    (310, 0): h.SendMessageResponseHeader,
    (320, 0): h.SendMessageResponseHeader,
    (325, 0): h.SendMessageResponseHeader,
    (325, 1): h.SendMessageResponseHeader,
    (327, 0): h.AddWritePermOfBrokerResponseHeader,
}
#: Fields of RocketMQ without a meaning for Gantry.
UNKNOWN = {
    *("AccessKey", "OnsChannel", "Signature", "ReqT", "bname", "lo"),
    *("groupSysFlag", "topicSysFlag"),
}


def kind_of(frame: Recorded) -> type[h.Header] | None:
    if frame.is_answer:
        return ANSWERS.get((frame.request_code, frame.header["code"]))
    return REQUESTS.get(frame.request_code)


TYPED = [frame for frame in recorded() if kind_of(frame) is not None]


@pytest.mark.parametrize("frame", TYPED, ids=str)
def test_typed_header(frame: Recorded) -> None:
    kind = kind_of(frame)
    assert kind is not None
    header = RemotingCommand.decode(frame.frame()).header(kind)

    again = RemotingCommand.decode(RemotingCommand.request(1, header).encode())
    assert again.header(kind) == header
    fields = encode_fields(header)
    for name, value in frame.header.get("extFields", {}).items():
        if name not in UNKNOWN:
            assert means(fields[name]) == means(value), name


def means(value: Any) -> str:
    """C++ clients write "0" for false; other values are compared as text."""
    text = str(value).lower()
    return "false" if text == "0" else text


def test_every_kind_of_header_was_seen() -> None:
    seen = {kind_of(frame) for frame in TYPED}
    assert seen == {*REQUESTS.values(), *ANSWERS.values()}


@pytest.mark.parametrize("frame", TYPED, ids=str)
def test_the_slow_path_reads_equal_values(frame: Recorded) -> None:
    kind = kind_of(frame)
    assert kind is not None
    fast = RemotingCommand.decode(frame.frame())
    slow = RemotingCommand.decode(frame.frame())
    assert slow.ext_fields is not None  # the command has dropped the text of the ext fields
    assert slow.header(kind) == fast.header(kind)
