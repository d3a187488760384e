"""Message filters of subscriptions: tags, and SQL92 expressions over properties."""

from core_broker.filter.bloom import BloomFilter
from core_broker.filter.expressions import compile_filter
from core_broker.filter.tags import codes_of, is_by_tag, matcher, parse_subscription

__all__ = [
    "BloomFilter",
    "codes_of",
    "compile_filter",
    "is_by_tag",
    "matcher",
    "parse_subscription",
]
