"""The clients without ``await``; see `core_broker.client.sync`."""

from core_broker.client.sync import (
    AdminClient,
    LitePullConsumer,
    Producer,
    PushConsumer,
    TransactionProducer,
)

__all__ = ["AdminClient", "LitePullConsumer", "Producer", "PushConsumer", "TransactionProducer"]
