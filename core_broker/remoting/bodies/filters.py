"""Filters of the expression types other than TAG, in the format of consumerFilter.json.

    {"filterDataByTopic":{topic:{"groupFilterData":{group: ConsumerFilterData},"topic":topic}}}

Compatible with the RocketMQ classes of the same names.
"""

from msgspec import Struct


class BloomFilterData(Struct, rename="camel", kw_only=True):
    """Bits that a message's bit map has set when the filter may accept the message."""

    bit_pos: list[int]
    bit_num: int


class ConsumerFilterData(Struct, rename="camel", kw_only=True):
    """The filter of one group in one topic; `dead_time` is 0 while the group has consumers."""

    consumer_group: str
    topic: str
    expression: str
    expression_type: str
    born_time: int = 0
    dead_time: int = 0
    bloom_filter_data: BloomFilterData | None = None
    client_version: int = 0

    @property
    def is_dead(self) -> bool:
        """True after the last consumer of the group has left."""
        return self.dead_time >= self.born_time


class FilterDataMapByTopic(Struct, rename="camel", kw_only=True):
    """The filters of one topic, by group."""

    topic: str = ""
    group_filter_data: dict[str, ConsumerFilterData] = {}


class ConsumerFilterWrapper(Struct, rename="camel", kw_only=True):
    """consumerFilter.json: the serialized form of RocketMQ's ConsumerFilterManager."""

    filter_data_by_topic: dict[str, FilterDataMapByTopic] = {}
