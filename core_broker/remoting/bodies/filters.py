"""Filters beyond tags, as they are kept in consumerFilter.json.

    {"filterDataByTopic":{topic:{"groupFilterData":{group: ConsumerFilterData},"topic":topic}}}

Compatible with the RocketMQ classes of the same names.
"""

from msgspec import Struct


class BloomFilterData(Struct, rename="camel", kw_only=True):
    """Which bits of a message's bit map say that a filter may want it."""

    bit_pos: list[int]
    bit_num: int


class ConsumerFilterData(Struct, rename="camel", kw_only=True):
    """The filter of one group in one topic; dead from `dead_time` on, unless that is 0."""

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
        """The last consumer of the group is gone."""
        return self.dead_time >= self.born_time


class FilterDataMapByTopic(Struct, rename="camel", kw_only=True):
    """The filters of one topic, by group."""

    topic: str = ""
    group_filter_data: dict[str, ConsumerFilterData] = {}


class ConsumerFilterWrapper(Struct, rename="camel", kw_only=True):
    """consumerFilter.json; RocketMQ writes its ConsumerFilterManager."""

    filter_data_by_topic: dict[str, FilterDataMapByTopic] = {}
