"""Which messages of a topic a consumer wants: by tag."""

from core_broker.filter.tags import matcher, parse_subscription

__all__ = ["matcher", "parse_subscription"]
