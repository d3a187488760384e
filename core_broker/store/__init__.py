"""The message store: RocketMQ's files, written by one event loop."""

from core_broker.store.message_store import MessageStore
from core_broker.store.results import (
    GetResult,
    GetStatus,
    PutResult,
    PutStatus,
    QueryResult,
    QueueUnit,
)
from core_broker.store.stats import StoreStats

__all__ = [
    "GetResult",
    "GetStatus",
    "MessageStore",
    "PutResult",
    "PutStatus",
    "QueryResult",
    "QueueUnit",
    "StoreStats",
]
