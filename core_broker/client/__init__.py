"""The client library: producer, push consumer and admin client, asyncio first.

It speaks RocketMQ's remoting protocol and works with Gantry and with Apache RocketMQ.
"""

from core_broker.client.admin import AdminClient
from core_broker.client.hooks import ClientHook, ConsumeContext, SendContext
from core_broker.client.producer import Producer, ProducerSettings
from core_broker.client.results import (
    ConsumeStatus,
    PullResult,
    PullStatus,
    RawPull,
    SendResult,
    SendStatus,
)

__all__ = [
    "AdminClient",
    "ClientHook",
    "ConsumeContext",
    "ConsumeStatus",
    "Producer",
    "ProducerSettings",
    "PullResult",
    "PullStatus",
    "RawPull",
    "SendContext",
    "SendResult",
    "SendStatus",
]
