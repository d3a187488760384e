"""What each request code needs: the table of ACL 1.0.

`java` is the table of RocketMQ 4.9.8 (`PlainAccessValidator.parse`, `Permission.needAdminPerm`):
batch sends and most administration need a valid signature only. `strict` closes these holes: batch
sends are checked as sends, changes of the broker and of accounts need an administrator, reads about
a topic or group need a permission for the topic or group, and a code without a row needs an
administrator. `docs/security.md` lists the differences. Pure.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from core_broker.auth.acl1.accounts import RETRY_PREFIX
from core_broker.auth.acl1.permissions import Perm
from core_broker.auth.contracts import Request
from core_broker.errors import ProtocolError
from core_broker.remoting.bodies import (
    HeartbeatData,
    LockBatchRequestBody,
    QueryAssignmentRequestBody,
    decode_request,
)
from core_broker.remoting.codes import RequestCode as Code


class Mode(StrEnum):
    """Which table decides."""

    STRICT = "strict"
    JAVA = "java"


class Need(NamedTuple):
    """A permission for a topic, or for a group written as %RETRY%group."""

    resource: str
    perm: Perm


class Demand(NamedTuple):
    """What a request needs beside a valid signature."""

    needs: tuple[Need, ...] = ()
    #: Whether only an administrator may send the request.
    is_admin_only: bool = False


SIGNED: Final = Demand()
ADMIN: Final = Demand(is_admin_only=True)

_Rule = Callable[[Request], Demand]


def demand_of(request: Request, mode: Mode) -> Demand:
    """What a request needs. Raises ProtocolError when a field or the body cannot be read."""
    if mode is Mode.JAVA:
        rule = _JAVA.get(request.code)
        return rule(request) if rule is not None else SIGNED
    return _STRICT.get(request.code, _admin)(request)


def topic_needs(topic: str, perm: Perm) -> Iterator[Need]:
    """The needs of a topic; none for an empty name. A retry topic needs SUB for its group."""
    if topic:
        is_retry = topic.startswith(RETRY_PREFIX)
        yield Need(topic, Perm.SUB if is_retry else perm)


def group_needs(group: str) -> Iterator[Need]:
    """The needs of a consumer group; none for an empty name."""
    if group:
        yield Need(RETRY_PREFIX + group, Perm.SUB)


class _Field(NamedTuple):
    """An ext field with the name of a topic or group, and the required permission."""

    name: str
    perm: Perm = Perm.SUB
    is_group: bool = False
    is_optional: bool = False

    def needs(self, request: Request) -> Iterator[Need]:
        value = request.ext_fields.get(self.name, "")
        if not value and not self.is_optional:
            raise ProtocolError(f"the request has no {self.name}")
        return group_needs(value) if self.is_group else topic_needs(value, self.perm)


def _admin(request: Request) -> Demand:
    return ADMIN


def _signed(request: Request) -> Demand:
    return SIGNED


def _named(*fields: _Field) -> _Rule:
    """A row whose topics and groups are ext fields."""

    def rule(request: Request) -> Demand:
        return Demand(tuple(need for field in fields for need in field.needs(request)))

    return rule


def _heartbeat(request: Request) -> Demand:
    """SUB for each consumer group and each subscribed topic; nothing for producer groups."""
    beat = decode_request(HeartbeatData, bytes(request.body))
    needs: dict[Need, None] = {}
    for consumer in beat.consumer_data_set:
        needs.update(dict.fromkeys(group_needs(consumer.group_name)))
        for subscription in consumer.subscription_data_set:
            needs.update(dict.fromkeys(topic_needs(subscription.topic, Perm.SUB)))
    return Demand(tuple(needs))


def _queue_locks(request: Request) -> Demand:
    body = decode_request(LockBatchRequestBody, bytes(request.body))
    return _subscribe([body.consumer_group], {queue.topic for queue in body.mq_set})


def _assignment(request: Request) -> Demand:
    body = decode_request(QueryAssignmentRequestBody, bytes(request.body))
    return _subscribe([body.consumer_group], [body.topic])


def _subscribe(groups: Iterable[str], topics: Iterable[str]) -> Demand:
    needs = [need for group in groups for need in group_needs(group)]
    return Demand((*needs, *(need for topic in topics for need in topic_needs(topic, Perm.SUB))))


def _java_send(topic_field: str, group_field: str) -> _Rule:
    """A send to a retry topic needs SUB for the group of another field, if the field is there."""

    def rule(request: Request) -> Demand:
        topic = request.ext_fields.get(topic_field, "")
        if topic.startswith(RETRY_PREFIX):
            return Demand(tuple(group_needs(request.ext_fields.get(group_field, ""))))
        return Demand(tuple(topic_needs(topic, Perm.PUB)))

    return rule


_TOPIC = _Field("topic")
#: Readers and writers of a topic may see its queues.
_TOPIC_OF_ANY = _Field("topic", Perm.ANY)
_GROUP = _Field("group", is_group=True)
_CONSUMER_GROUP = _Field("consumerGroup", is_group=True)
_OPTIONAL_TOPIC = _Field("topic", is_optional=True)
_OPTIONAL_GROUP = _Field("consumerGroup", is_group=True, is_optional=True)

_STRICT: Final[dict[int, _Rule]] = {
    Code.SEND_MESSAGE: _named(_Field("topic", Perm.PUB)),
    Code.SEND_MESSAGE_V2: _named(_Field("b", Perm.PUB)),
    Code.SEND_BATCH_MESSAGE: _named(_Field("b", Perm.PUB)),
    Code.PULL_MESSAGE: _named(_TOPIC, _CONSUMER_GROUP),
    Code.LITE_PULL_MESSAGE: _named(_TOPIC, _CONSUMER_GROUP),
    Code.QUERY_MESSAGE: _named(_TOPIC),
    Code.QUERY_CONSUMER_OFFSET: _named(_CONSUMER_GROUP, _TOPIC),
    Code.UPDATE_CONSUMER_OFFSET: _named(_CONSUMER_GROUP, _TOPIC),
    Code.SEARCH_OFFSET_BY_TIMESTAMP: _named(_TOPIC_OF_ANY),
    Code.GET_MAX_OFFSET: _named(_TOPIC_OF_ANY),
    Code.GET_MIN_OFFSET: _named(_TOPIC_OF_ANY),
    Code.GET_EARLIEST_MSG_STORETIME: _named(_TOPIC_OF_ANY),
    Code.HEART_BEAT: _heartbeat,
    Code.UNREGISTER_CLIENT: _named(_OPTIONAL_GROUP),
    Code.CONSUMER_SEND_MSG_BACK: _named(_GROUP),
    Code.GET_CONSUMER_LIST_BY_GROUP: _named(_CONSUMER_GROUP),
    Code.LOCK_BATCH_MQ: _queue_locks,
    Code.UNLOCK_BATCH_MQ: _queue_locks,
    Code.QUERY_ASSIGNMENT: _assignment,
    Code.GET_TOPIC_STATS_INFO: _named(_TOPIC_OF_ANY),
    Code.GET_TOPIC_CONFIG: _named(_TOPIC_OF_ANY),
    Code.QUERY_TOPIC_CONSUME_BY_WHO: _named(_TOPIC_OF_ANY),
    Code.QUERY_CONSUME_QUEUE: _named(_TOPIC, _OPTIONAL_GROUP),
    Code.QUERY_CORRECTION_OFFSET: _named(_TOPIC),
    Code.GET_CONSUMER_CONNECTION_LIST: _named(_CONSUMER_GROUP),
    Code.GET_CONSUMER_RUNNING_INFO: _named(_CONSUMER_GROUP),
    Code.GET_CONSUME_STATS: _named(_CONSUMER_GROUP, _OPTIONAL_TOPIC),
    Code.QUERY_TOPICS_BY_CONSUMER: _named(_GROUP),
    Code.QUERY_SUBSCRIPTION_BY_CONSUMER: _named(_GROUP, _TOPIC),
    Code.GET_SUBSCRIPTIONGROUP_CONFIG: _named(_GROUP),
    Code.QUERY_CONSUME_TIME_SPAN: _named(_GROUP, _TOPIC),
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _named(_GROUP, _TOPIC),
    Code.INVOKE_BROKER_TO_RESET_OFFSET: _named(_GROUP, _TOPIC),
    Code.SET_GROUP_OFFSETS: _named(_GROUP, _TOPIC),
    Code.CLONE_GROUP_OFFSET: _named(
        _Field("srcGroup", is_group=True), _Field("destGroup", is_group=True), _OPTIONAL_TOPIC
    ),
    **dict.fromkeys(
        (
            # The answer of a transaction names no topic, and a reply goes to one waiting client.
            *(Code.END_TRANSACTION, Code.SEND_REPLY_MESSAGE, Code.SEND_REPLY_MESSAGE_V2),
            Code.CHECK_CLIENT_CONFIG,
            # Lists and counters, without messages and without settings: consoles and slaves.
            *(Code.GET_ALL_TOPIC_CONFIG, Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG),
            *(Code.GET_ALL_CONSUMER_OFFSET, Code.GET_ALL_DELAY_OFFSET),
            Code.GET_ALL_MESSAGE_REQUEST_MODE,
            *(Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, Code.GET_BROKER_RUNTIME_INFO),
            *(Code.VIEW_BROKER_STATS_DATA, Code.GET_BROKER_CONSUME_STATS),
            *(Code.GET_PRODUCER_CONNECTION_LIST, Code.GET_ALL_PRODUCER_INFO),
            *(Code.GET_BROKER_HA_STATUS, Code.GET_BROKER_EPOCH_CACHE),
            Code.GET_BROKER_CLUSTER_ACL_INFO,
            *(Code.GET_TOPIC_INVENTORY, Code.GET_GROUP_INVENTORY, Code.GET_ALL_CLIENTS),
        ),
        _signed,
    ),
}

_JAVA: Final[dict[int, _Rule]] = {
    Code.SEND_MESSAGE: _java_send("topic", "group"),
    Code.SEND_MESSAGE_V2: _java_send("b", "a"),
    Code.CONSUMER_SEND_MSG_BACK: _named(_GROUP._replace(is_optional=True)),
    Code.PULL_MESSAGE: _named(_OPTIONAL_TOPIC, _OPTIONAL_GROUP),
    Code.QUERY_MESSAGE: _named(_OPTIONAL_TOPIC),
    Code.HEART_BEAT: _heartbeat,
    Code.UNREGISTER_CLIENT: _named(_OPTIONAL_GROUP),
    Code.GET_CONSUMER_LIST_BY_GROUP: _named(_OPTIONAL_GROUP),
    Code.UPDATE_CONSUMER_OFFSET: _named(_OPTIONAL_GROUP, _OPTIONAL_TOPIC),
    # Accounts are changed and listed, and clients are kicked, by administrators in every mode.
    **dict.fromkeys(
        (
            *(Code.UPDATE_AND_CREATE_TOPIC, Code.UPDATE_BROKER_CONFIG),
            *(Code.DELETE_TOPIC_IN_BROKER, Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP),
            *(Code.DELETE_SUBSCRIPTIONGROUP, Code.UPDATE_AND_CREATE_ACL_CONFIG),
            *(Code.DELETE_ACL_CONFIG, Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG),
            *(Code.GET_ACCESS_INVENTORY, Code.UPDATE_ACCESS_ACCOUNT, Code.KICK_CLIENT),
        ),
        _admin,
    ),
}
