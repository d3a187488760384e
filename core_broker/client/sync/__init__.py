"""The client library without ``await``, for programs that use threads.

    from core_broker.client.sync import Producer

    with Producer("group", "127.0.0.1:9876") as producer:
        producer.send(Message("orders", b"paid"))

The clients wrap the clients of `core_broker.client`, running on one background thread of the
process. Methods have equal names, arguments and errors, and may be called from any thread.
Listeners are plain functions, called on listener threads. Clients still running at the end of the
interpreter are stopped. After a fork the child process must create new clients.
"""

from core_broker.client.sync.admin import AdminClient
from core_broker.client.sync.consumers import LitePullConsumer, PushConsumer
from core_broker.client.sync.producer import Producer, TransactionProducer

__all__ = ["AdminClient", "LitePullConsumer", "Producer", "PushConsumer", "TransactionProducer"]
