"""The kinds of foreign clients, and what each of them can do: the table that the tests follow.

A feature is a word in a test; `having` makes a test run once per kind that has it. What a client
has no way to do is not a skipped test, but a line of the summary.
"""

from dataclasses import dataclass

import pytest

from tests.compat import installing

FEATURES = (
    "sync",
    "async",
    "oneway",
    "shard",
    "batch",
    "delay",
    "compressed",
    "auto topic",
    "transactions",
    "tags",
    "sql",
    "broadcasting",
    "orderly",
    "orderly failures",
    "retries",
    "rebalance",
    "restart",
    "request-reply",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One client: what it is called, and the features that it does not have."""

    title: str
    lacks: frozenset[str]

    def __post_init__(self) -> None:
        assert self.lacks <= {*FEATURES}


# Neither has request-reply, nor anything that one would call transactions or SQL92.
_SMALL = frozenset({"transactions", "sql", "request-reply", "orderly failures"})

KINDS = {
    # The failure of its listener is lost on the way through ctypes, so it never sends code 36.
    "cpp": Kind(f"C++ {installing.CPP_PACKAGE}", _SMALL | {"retries"}),
    # It gives up on a topic without a route, so it never gets to the default topic.
    "node": Kind(
        f"Node {installing.NODE_PACKAGE}",
        _SMALL | {"async", "oneway", "shard", "batch", "auto topic", "orderly"},
    ),
    "java": Kind(f"Java rocketmq-client {installing.JAVA_VERSION}", frozenset()),
    # Its request() times out as soon as the send succeeds, against any broker.
    "java5": Kind(f"Java rocketmq-client {installing.JAVA5_VERSION}", frozenset({"request-reply"})),
    "go": Kind(f"Go rocketmq-client-go {installing.GO_VERSION}", frozenset()),
}

TITLES = {name: kind.title for name, kind in KINDS.items()} | {
    f"java-broker-{version}": f"Java rocketmq-broker {version}"
    for version in installing.JAVA_BROKER_VERSIONS
}


def having(feature: str) -> pytest.MarkDecorator:
    """Run a test for every kind of client that has a feature."""
    assert feature in FEATURES
    kinds = [name for name, kind in KINDS.items() if feature not in kind.lacks]
    return pytest.mark.parametrize("kind", kinds)
