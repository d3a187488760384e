"""The kinds of foreign clients and their features.

`having` runs a test once per kind that has the feature. A feature that a client lacks is no skipped
test; the summary lists the feature.
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
    """A client: title, and missing features."""

    title: str
    lacks: frozenset[str]

    def __post_init__(self) -> None:
        assert self.lacks <= {*FEATURES}


# Features that both the C++ client and the Node client lack.
_SMALL = frozenset({"transactions", "sql", "request-reply", "orderly failures"})

KINDS = {
    # ctypes drops the exception of a listener, so the client never sends code 36.
    "cpp": Kind(f"C++ {installing.CPP_PACKAGE}", _SMALL | {"retries"}),
    # The client fails for a topic without a route and never tries the default topic.
    "node": Kind(
        f"Node {installing.NODE_PACKAGE}",
        _SMALL | {"async", "oneway", "shard", "batch", "auto topic", "orderly"},
    ),
    "java": Kind(f"Java rocketmq-client {installing.JAVA_VERSION}", frozenset()),
    # The client's request() times out when the send succeeds, on any broker.
    "java5": Kind(f"Java rocketmq-client {installing.JAVA5_VERSION}", frozenset({"request-reply"})),
    "go": Kind(f"Go rocketmq-client-go {installing.GO_VERSION}", frozenset()),
    "rust": Kind(
        f"Rust {installing.RUST_CRATE} {installing.RUST_VERSION}", frozenset({"request-reply"})
    ),
}

TITLES = {name: kind.title for name, kind in KINDS.items()} | {
    f"java-broker-{version}": f"Java rocketmq-broker {version}"
    for version in installing.JAVA_BROKER_VERSIONS
}


def having(feature: str) -> pytest.MarkDecorator:
    """Run a test for every kind of client with a feature."""
    assert feature in FEATURES
    kinds = [name for name, kind in KINDS.items() if feature not in kind.lacks]
    return pytest.mark.parametrize("kind", kinds)
