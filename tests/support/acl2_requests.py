"""The requests of the matrix for ACL 2.0: every code that a broker knows, with topics and groups.

Admitted requests are handled, hence change topics and groups of the broker, but no users: the codes
3001 to 3008 are about a user that does not exist.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
    encode_body,
)


class Asked(NamedTuple):
    """A request without keys; `names` are the resources that decide, besides the cluster."""

    title: str
    code: int
    names: tuple[str, ...]
    fields: dict[str, str]
    body: bytes = b""


#: What RocketMQ's remarks call an absent topic or group.
ABSENT = "null"
#: Codes about a topic, a group or both; and about the cluster or nothing.
_WITH_NAMES = (
    *(10, 310, 320, 370, 37, 36, 11, 12, 35, 38, 14, 15, 309, 17, 215, 207, 222, 353, 314, 323),
    *(29, 30, 31, 32, 202, 300, 351, 354, 33, 203, 307, 343, 352, 208, 223, 303, 308, 321, 345),
    *(200_050, 200_051, 200_052, 200_053, 200_054, 200_055, 324, 325, 361, 513),
)
_WITHOUT_NAMES = (
    *(204, 315, 317, 328, 355, 905, 906, 1008, 21, 25, 26, 28, 43, 45, 60, 61, 201, 305, 306),
    *(316, 329, 401, 402, 907, 1007, 2001, 2002, 2003, 2004),
    *range(3001, 3011),
    *(50, 51, 52, 53, 54, 200_151, 4711),
)
#: Fields that headers of RocketMQ need besides topics and groups.
_NUMBERS = (
    *("queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset", "suspendTimeoutMillis"),
    *("subVersion", "offset", "timestamp", "tranStateTableOffset", "commitLogOffset"),
    *("delayLevel", "originMsgId", "maxNum", "beginTimestamp", "endTimestamp", "invisibleTime"),
    *("pollTime", "bornTime", "initMode", "index", "count", "perm", "readQueueNums"),
    *("writeQueueNums", "defaultTopicQueueNums", "bornTimestamp", "flag", "topicSysFlag"),
)
_FILLING = {
    **dict.fromkeys(_NUMBERS, "0"),
    "clientID": "c",
    "clientId": "c",
    "msgId": "m",
    "key": "k",
    "brokerName": "nobody",
    "producerGroup": "PG",
    "defaultTopic": "TBW102",
    "topicFilterType": "SINGLE_TAG",
    "offline": "false",
    "isForce": "false",
    "order": "false",
    "readable": "true",
    "srcGroup": "SG",
    "extraInfo": "0 0 0 0 0 nobody 0",
    "commitOrRollback": "8",
    "recallHandle": "none",
    "lastModifyTime": "0",
    "statsName": "S",
    "statsKey": "K",
    "username": "ghost",
    "subject": "User:ghost",
}
_SEND_FILLING = {"c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0"}
#: The fields of a group in the headers of different codes.
_GROUP_FIELDS = ("consumerGroup", "group", "groupName", "destGroup")


def requests() -> Iterator[Asked]:
    """All requests of the matrix, in a fixed order."""
    for code in _WITH_NAMES:
        yield _named(code, "T", "G")
        yield _named(code, "%RETRY%G", "G")
    for code in (10, 310, 320, 11, 361, 12, 14, 15, 17, 215):
        yield _named(code, "TT", "GG")
        yield _named(code, "%DLQ%G", "G")
    for code in (11, 15, 14, 361, 200_050):
        yield _named(code, "T", "other")
        yield _named(code, "%RETRY%other", "G")
    for code in _WITH_NAMES:
        yield _named(code, "", "G")
        yield _named(code, "T", "")
    yield Asked(
        "310 %RETRY%other as G", 310, ("Group:other", "Group:G"), _send("%RETRY%other", "G")
    )
    yield Asked(
        "320 %RETRY%other as G", 320, ("Group:other", "Group:G"), _send("%RETRY%other", "G")
    )
    for code in _WITHOUT_NAMES:
        yield Asked(f"{code}", code, (), _FILLING)
    yield from _with_bodies()


def _named(code: int, topic: str, group: str) -> Asked:
    names = [f"Topic:{topic or ABSENT}", f"Group:{group or ABSENT}"]
    if topic.startswith("%RETRY%"):
        names.append(f"Group:{topic.removeprefix('%RETRY%')}")
    if code in (310, 320, 325):
        fields = _send(topic, "PG" if not topic.startswith("%RETRY%") else group)
    else:
        fields = dict(_FILLING)
        if topic:
            fields["topic"] = topic
        if group:
            fields.update(dict.fromkeys(_GROUP_FIELDS, group))
        if code == 308 and group:
            fields.update(filterGroups=group, compareGroup=group)
    return Asked(
        f"{code} {topic or '-'} {group or '-'}", code, tuple(names), fields, _body_of(code)
    )


def _body_of(code: int) -> bytes:
    return b"x" if code in (10, 310, 324, 325) else b""


def _send(topic: str, group: str) -> dict[str, str]:
    fields = {"a": group, **_SEND_FILLING, "i": "", "l": "0", "m": "false"}
    return fields | {"b": topic} if topic else fields


def _with_bodies() -> Iterator[Asked]:
    queues = [{"topic": "T", "brokerName": "broker-a", "queueId": 0}]
    lock = {"consumerGroup": "G", "clientId": "c", "mqSet": queues}
    client = {"clientId": "c", "group": "G", "subscriptionData": {"topic": "T", "subString": "*"}}
    assignment = {"topic": "T", "consumerGroup": "G", "clientId": "c", "strategyName": "AVG"}
    bodies: tuple[tuple[int, Any], ...] = (
        *((code, lock) for code in (41, 42)),
        (46, client),
        (400, {**assignment, "messageModel": "CLUSTERING"}),
        (18, {"topicConfigList": [{"topicName": "T"}]}),
        (200, {"groupName": "G"}),
        (225, {"groupConfigList": [{"groupName": "G"}]}),
    )
    both = ("Topic:T", "Group:G")
    for code, body in bodies:
        yield Asked(f"{code} body", code, both, _FILLING, encode_body(body))
    for topic in ("T", "%RETRY%G", "%RETRY%other"):
        data = ConsumerData(group_name="G", subscription_data_set=[SubscriptionData(topic=topic)])
        beat = encode_body(HeartbeatData(client_id="c", consumer_data_set=[data]))
        names = (f"Topic:{topic}", "Group:G", f"Group:{topic.removeprefix('%RETRY%')}")
        yield Asked(f"34 {topic} G", 34, names, {}, beat)
    for code in (34, 41, 42):
        yield Asked(f"{code} no JSON", code, (), _FILLING, b"{")
