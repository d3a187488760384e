"""The message store: RocketMQ's files, written by one event loop."""

from core_broker.store.cold_reads import ColdRead, ask_all
from core_broker.store.message_store import MessageStore
from core_broker.store.property_filter import PropertyFilter
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
    "ColdRead",
    "GetResult",
    "GetStatus",
    "MessageStore",
    "PropertyFilter",
    "PutResult",
    "PutStatus",
    "QueryResult",
    "QueueUnit",
    "StoreStats",
    "ask_all",
]
