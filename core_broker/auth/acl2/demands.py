"""The resources and actions that the request codes need.

Compatible with DefaultAuthorizationContextBuilder of RocketMQ 5.3.3. RocketMQ checks nothing for
codes outside of its table: any authenticated user may change settings (25), or acknowledge messages
of any group (200151). `STRICT` has a row for each of these codes, and a code without a row needs a
super user; `JAVA` leaves them unchecked.

A retry topic `%RETRY%group` is the resource `Group:group`: sends to the topic need Sub, because
consumers send messages back. RocketMQ takes the group of a send from a field that the client is
free to set; here the group is always that of the topic. `%DLQ%group` is an ordinary topic.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from core_broker.auth.contracts import STORED_ACTIONS, Action, Request, ResourceKind
from core_broker.errors import ProtocolError
from core_broker.message.topics import RETRY_PREFIX
from core_broker.remoting.bodies import (
    CheckClientRequestBody,
    CreateTopicListRequestBody,
    HeartbeatData,
    LockBatchRequestBody,
    QueryAssignmentRequestBody,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    UnlockBatchRequestBody,
    decode_request,
)

T = TypeVar("T")


class Mode(StrEnum):
    """The values of authorizationMode."""

    STRICT = "STRICT"
    JAVA = "JAVA"


class Demand(NamedTuple):
    """A resource, and the actions of which one is needed."""

    kind: ResourceKind
    name: str
    actions: tuple[Action, ...]


class Unreadable(Exception):
    """The request has no header field or body that its code needs."""


Read = Callable[[Request, str], Iterable[Demand]]

#: Returns the demands of a request to a server of a cluster, as `demands_of`.
DemandsOf = Callable[[Request, str, Mode], tuple[Demand, ...] | None]

_PUB, _SUB = (Action.PUB,), (Action.SUB,)
_GET, _UPDATE = (Action.GET,), (Action.UPDATE,)
_CREATE, _DELETE = (Action.CREATE,), (Action.DELETE,)


def demands_of(request: Request, cluster: str, mode: Mode) -> tuple[Demand, ...] | None:
    """Return the demands of a request to a broker of a cluster, without repetition.

    None means that the code needs a super user. Raises Unreadable.
    """
    read = _CHECKED.get(request.code)
    if read is None:
        if mode is Mode.JAVA:
            return ()
        read = _CHECKED_HERE.get(request.code)
        if read is None:
            return None
    demands: dict[Demand, None] = {}
    try:
        for demand in read(request, cluster):
            demands[demand] = None
    except ProtocolError as error:
        raise Unreadable(str(error)) from None
    except Unreadable:
        # RocketMQ derives no demand from an absent field, except for the name `null` with the
        # codes of _NEVER_ABSENT. The demands of the other fields stay.
        if mode is Mode.STRICT or request.code in _NEVER_ABSENT:
            raise
    return tuple(demands)


def stored_demand(code: int, topic: str) -> Demand:
    """Return the demand of a request about one stored message, for the topic of the message."""
    return topic_demand(topic, STORED_ACTIONS[code])


def topic_demand(name: str, actions: tuple[Action, ...]) -> Demand:
    """Return the demand of a topic; of a retry topic, that of its group."""
    if name.startswith(RETRY_PREFIX):
        group_actions = _SUB if actions == _PUB else actions
        return Demand(ResourceKind.GROUP, name.removeprefix(RETRY_PREFIX), group_actions)
    return Demand(ResourceKind.TOPIC, name, actions)


def _group(name: str, actions: tuple[Action, ...]) -> Demand:
    return Demand(ResourceKind.GROUP, name, actions)


class _Field(NamedTuple):
    """A header field with a name, or with `separator` several names."""

    name: str
    make: Callable[[str, tuple[Action, ...]], Demand]
    actions: tuple[Action, ...]
    is_optional: bool = False
    separator: str = ""

    def demands(self, request: Request) -> Iterator[Demand]:
        """Raises Unreadable for an absent required field."""
        value = request.ext_fields.get(self.name)
        if not value:
            if self.is_optional:
                return
            raise Unreadable(f"the field {self.name} is missing")
        for part in value.split(self.separator) if self.separator else [value]:
            yield self.make(part, self.actions)


def _fields(*fields: _Field) -> Read:
    """Demands of all present fields; raises Unreadable behind the last demand."""

    def read(request: Request, cluster: str) -> Iterator[Demand]:
        absent = None
        for each in fields:
            try:
                yield from each.demands(request)
            except Unreadable as error:
                absent = absent or error
        if absent is not None:
            raise absent

    return read


def _of_topic(
    actions: tuple[Action, ...], name: str = "topic", *, optional: bool = False
) -> _Field:
    return _Field(name, topic_demand, actions, optional)


def _of_group(
    actions: tuple[Action, ...], name: str = "consumerGroup", *, optional: bool = False
) -> _Field:
    return _Field(name, _group, actions, optional)


def _cluster(*actions: Action) -> Read:
    def read(request: Request, cluster: str) -> Iterator[Demand]:
        yield Demand(ResourceKind.CLUSTER, cluster, actions)

    return read


def _body(kind: type[T], read: Callable[[T], Iterable[Demand]]) -> Read:
    """Demands of a decoded body; decoding has the limits of the handlers."""

    def decode(request: Request, cluster: str) -> Iterable[Demand]:
        return read(decode_request(kind, bytes(request.body)))

    return decode


def _heartbeat(beat: HeartbeatData) -> Iterator[Demand]:
    for consumer in beat.consumer_data_set:
        yield _group(consumer.group_name, _SUB)
        for subscription in consumer.subscription_data_set:
            yield topic_demand(subscription.topic, _SUB)


def _lock(body: LockBatchRequestBody | UnlockBatchRequestBody) -> Iterator[Demand]:
    yield _group(body.consumer_group, _SUB)
    for queue in body.mq_set:
        yield topic_demand(queue.topic, _SUB)


def _client_check(body: CheckClientRequestBody) -> Iterator[Demand]:
    yield _group(body.group, _SUB)
    yield topic_demand(body.subscription_data.topic, _SUB)


def _assignment(body: QueryAssignmentRequestBody) -> Iterator[Demand]:
    yield topic_demand(body.topic, _SUB)
    yield _group(body.consumer_group, _SUB)


def _created_topics(body: CreateTopicListRequestBody) -> Iterator[Demand]:
    return (topic_demand(topic.topic_name, _CREATE) for topic in body.topic_config_list)


def _created_groups(body: SubscriptionGroupList) -> Iterator[Demand]:
    return (_group(group.group_name, _CREATE) for group in body.group_config_list)


_CONSUME = _fields(_of_topic(_SUB), _of_group(_SUB))
_TOPIC_GET = _fields(_of_topic(_GET))
_UPDATE_BOTH = _fields(_of_group(_UPDATE, "group"), _of_topic(_UPDATE))
_GET_GROUP_FIELD = _fields(_of_topic(_GET, optional=True), _of_group(_GET, "group", optional=True))
_CLUSTER_GET, _CLUSTER_UPDATE = _cluster(Action.GET), _cluster(Action.UPDATE)
_POP = _fields(_of_group(_SUB), _of_topic(_SUB))
_SUB_OR_GET = (Action.SUB, Action.GET)
_SUB_OR_UPDATE = (Action.SUB, Action.UPDATE)

#: Codes that RocketMQ 5.3.3 checks, and Gantry's 60006, which needs a permission in both modes.
_CHECKED: Final[dict[int, Read]] = {
    10: _fields(_of_topic(_PUB)),
    **dict.fromkeys((310, 320), _fields(_of_topic(_PUB, "b"))),
    370: _fields(_of_topic(_PUB)),
    37: _fields(_of_topic(_PUB, optional=True)),
    36: _fields(_of_group(_SUB, "group")),
    11: _CONSUME,
    12: _fields(_of_topic(_SUB_OR_GET)),
    34: _body(HeartbeatData, _heartbeat),
    35: _fields(_of_group(_SUB, optional=True)),
    38: _fields(_of_group(_SUB_OR_GET)),
    14: _fields(_of_topic(_SUB_OR_GET), _of_group(_SUB_OR_GET)),
    15: _fields(_of_topic(_SUB_OR_UPDATE), _of_group(_SUB_OR_UPDATE)),
    41: _body(LockBatchRequestBody, _lock),
    42: _body(UnlockBatchRequestBody, _lock),
    **dict.fromkeys((200_050, 200_051, 200_053, 200_054), _POP),
    200_052: _CONSUME,
    200_055: _fields(_of_group(_GET), _of_topic(_GET)),
    309: _fields(_of_group(_SUB), _of_topic(_SUB, optional=True)),
    17: _fields(_of_topic(_CREATE)),
    215: _fields(_of_topic(_DELETE)),
    207: _fields(_of_group(_DELETE, "groupName")),
    **dict.fromkeys((222, 353), _UPDATE_BOTH),
    314: _fields(_of_group(_UPDATE, "destGroup"), _of_topic(_UPDATE, optional=True)),
    323: _fields(_of_topic(_UPDATE)),
    **dict.fromkeys((29, 30, 31, 32, 202, 300, 351, 354), _TOPIC_GET),
    33: _fields(_of_topic(_GET, optional=True)),
    **dict.fromkeys((203, 307), _fields(_of_group(_GET))),
    **dict.fromkeys((343, 352), _fields(_of_group(_GET, "group"))),
    208: _fields(_of_group(_GET, optional=True), _of_topic(_GET, optional=True)),
    321: _fields(_of_topic(_GET, optional=True), _of_group(_GET, optional=True)),
    **dict.fromkeys((223, 303), _GET_GROUP_FIELD),
    345: _fields(_of_group(_GET, "group", optional=True), _of_topic(_GET, optional=True)),
    308: _fields(
        _of_group(_GET, "compareGroup", optional=True),
        _Field("filterGroups", _group, _GET, is_optional=True, separator=","),
        _of_topic(_GET, optional=True),
    ),
    **dict.fromkeys((204, 315, 317, 328, 355, 3004, 3005, 3009, 3010), _CLUSTER_GET),
    **dict.fromkeys((905, 906, 908, 1008, 3001, 3002, 3003, 3006, 3007, 3008), _CLUSTER_UPDATE),
    60_006: _CLUSTER_UPDATE,
}
#: Codes whose absent topic or group has the name `null` in RocketMQ 5.3.3.
_NEVER_ABSENT: Final = frozenset({10, 310, 320, 370, 36, 11, 12, 38, 14, 15})
#: Codes that RocketMQ 5.3.3 leaves unchecked, and Gantry's other private codes.
_CHECKED_HERE: Final[dict[int, Read]] = {
    18: _body(CreateTopicListRequestBody, _created_topics),
    200: _body(SubscriptionGroupConfig, lambda group: [_group(group.group_name, _CREATE)]),
    225: _body(SubscriptionGroupList, _created_groups),
    513: _fields(_of_topic(_CREATE)),
    46: _body(CheckClientRequestBody, _client_check),
    324: _fields(_of_topic(_PUB)),
    325: _fields(_of_topic(_PUB, "b")),
    361: _CONSUME,
    400: _body(QueryAssignmentRequestBody, _assignment),
    60_003: _UPDATE_BOTH,
    **dict.fromkeys(
        (21, 26, 28, 43, 45, 52, 54, 60, 61, 201, 305, 402, 907, 1007, 2003), _CLUSTER_GET
    ),
    **dict.fromkeys((60_000, 60_001, 60_002), _CLUSTER_GET),
    **dict.fromkeys((25, 50, 51, 53, 306, 316, 329, 401, 2001, 2002, 2004), _CLUSTER_UPDATE),
}
