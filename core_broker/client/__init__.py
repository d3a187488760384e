"""The client library: producer, consumers and admin client, asyncio first.

The library speaks RocketMQ's remoting protocol and works with Gantry and with Apache RocketMQ.
Examples are in docs/client.md; errors are in `core_broker.errors`.
"""

from core_broker.client.acl import AclRpcHook
from core_broker.client.admin import AdminClient
from core_broker.client.consumer.lite_pull_consumer import LitePullConsumer
from core_broker.client.consumer.process_queue import CacheLimits
from core_broker.client.consumer.pull_consumer import PullConsumer
from core_broker.client.consumer.push_consumer import PushConsumer
from core_broker.client.consumer.settings import ConsumerSettings, LitePullSettings
from core_broker.client.credentials import Credentials
from core_broker.client.hooks import ClientHook, ConsumeContext, EndTransactionContext, SendContext
from core_broker.client.producer import Producer
from core_broker.client.producer_settings import ProducerSettings
from core_broker.client.results import (
    ConsumeOrderlyStatus,
    ConsumeStatus,
    PullResult,
    PullStatus,
    RawPull,
    ReconsumeLater,
    SendResult,
    SendStatus,
    SuspendQueue,
)
from core_broker.client.sending import CompressionType
from core_broker.client.subscription import MessageSelector
from core_broker.client.transactions import (
    LocalTransactionState,
    TransactionProducer,
    TransactionSendResult,
)
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import (
    ConsumeFromWhere,
    MessageModel,
    MessageQueue,
    SubscriptionGroupConfig,
    TopicConfig,
)
from core_broker.remoting.tls_client import ClientTls

__all__ = [
    "AclRpcHook",
    "AdminClient",
    "CacheLimits",
    "ClientHook",
    "ClientTls",
    "CompressionType",
    "ConsumeContext",
    "ConsumeFromWhere",
    "ConsumeOrderlyStatus",
    "ConsumeStatus",
    "ConsumerSettings",
    "Credentials",
    "EndTransactionContext",
    "LitePullConsumer",
    "LitePullSettings",
    "LocalTransactionState",
    "Message",
    "MessageExt",
    "MessageModel",
    "MessageQueue",
    "MessageSelector",
    "Producer",
    "ProducerSettings",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "RawPull",
    "ReconsumeLater",
    "SendContext",
    "SendResult",
    "SendStatus",
    "SubscriptionGroupConfig",
    "SuspendQueue",
    "TopicConfig",
    "TransactionProducer",
    "TransactionSendResult",
]
