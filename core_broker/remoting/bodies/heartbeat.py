"""The heartbeat of a client.

Compatible with RocketMQ's HeartbeatData, ConsumerData, ProducerData and SubscriptionData.
"""

from msgspec import Struct, field

from core_broker.remoting.bodies.enum_names import (
    ConsumeFromWhere,
    ConsumeType,
    EnumName,
    MessageModel,
    name_ordinals,
)

EXPRESSION_TAG = "TAG"
EXPRESSION_SQL92 = "SQL92"
SUBSCRIBE_ALL = "*"


class SubscriptionData(Struct, rename="camel", kw_only=True):
    """A group's subscription to a topic. `code_set` has the tags' Java hashes; no tags mean all.

    Filters must not use `code_set`: C++ clients send wrong hashes ([0, 0] for any two tags).
    """

    topic: str
    sub_string: str = SUBSCRIBE_ALL
    tags_set: set[str] = set()
    code_set: set[int] = set()
    sub_version: int = 0
    expression_type: str = EXPRESSION_TAG
    class_filter_mode: bool = False


class ConsumerData(Struct, rename="camel", kw_only=True):
    """A consumer group of a client."""

    group_name: str
    consume_type: EnumName = ConsumeType.CONSUME_PASSIVELY.value
    message_model: EnumName = MessageModel.CLUSTERING.value
    consume_from_where: EnumName = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET.value
    subscription_data_set: list[SubscriptionData] = []
    unit_mode: bool = False

    def __post_init__(self) -> None:
        name_ordinals(
            self,
            consume_type=ConsumeType,
            message_model=MessageModel,
            consume_from_where=ConsumeFromWhere,
        )


class ProducerData(Struct, rename="camel", kw_only=True):
    """A producer group of a client."""

    group_name: str


class HeartbeatData(Struct, rename="camel", kw_only=True):
    """Request of HEART_BEAT (34). The last two fields come from 5.x clients only."""

    client_id: str = field(name="clientID")
    producer_data_set: list[ProducerData] = []
    consumer_data_set: list[ConsumerData] = []
    heartbeat_fingerprint: int | None = None
    without_sub: bool | None = None


class CheckClientRequestBody(Struct, rename="camel", kw_only=True):
    """Request of CHECK_CLIENT_CONFIG (46), for filters of other types than TAG."""

    client_id: str
    group: str
    subscription_data: SubscriptionData
    namespace: str | None = None
