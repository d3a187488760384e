"""The client library: producer, push consumer and admin client, asyncio first.

It speaks RocketMQ's remoting protocol and works with Gantry and with Apache RocketMQ.
"""

from core_broker.client.admin import AdminClient
from core_broker.client.consumer.push_consumer import PushConsumer
from core_broker.client.hooks import ClientHook, ConsumeContext, SendContext
from core_broker.client.producer import Producer
from core_broker.client.results import (
    ConsumeStatus,
    PullResult,
    PullStatus,
    RawPull,
    SendResult,
    SendStatus,
)
from core_broker.client.settings import ConsumerSettings, ProducerSettings

__all__ = [
    "AdminClient",
    "ClientHook",
    "ConsumeContext",
    "ConsumeStatus",
    "ConsumerSettings",
    "Producer",
    "ProducerSettings",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "RawPull",
    "SendContext",
    "SendResult",
    "SendStatus",
]
