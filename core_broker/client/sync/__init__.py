"""The client library without ``await``, for programs that use threads.

    from core_broker.client.sync import Producer

    with Producer("group", "127.0.0.1:9876") as producer:
        producer.send(Message("orders", b"paid"))

The clients are those of `core_broker.client`, run on one background thread of the process; their
methods have the same names, arguments and errors, and may be called from any thread. Listeners are
plain functions, called on threads of their own. What is not stopped is stopped when the interpreter
ends. After a fork the child makes clients of its own.
"""

from core_broker.client.sync.admin import AdminClient
from core_broker.client.sync.consumers import LitePullConsumer, PushConsumer
from core_broker.client.sync.producer import Producer, TransactionProducer

__all__ = ["AdminClient", "LitePullConsumer", "Producer", "PushConsumer", "TransactionProducer"]
