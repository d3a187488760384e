"""The push consumer: pulls messages and calls the application's listener.

Compatible with RocketMQ's DefaultMQPushConsumer, with a concurrent or an orderly listener.
"""

from collections.abc import Sequence
from dataclasses import replace

from core_broker.client.consumer.group_member import Member
from core_broker.client.consumer.listening import AnyListener, Listener, OrderlyListener
from core_broker.client.consumer.running_consumer import RunningConsumer
from core_broker.client.consumer.settings import ConsumerSettings
from core_broker.client.hooks import ClientHook
from core_broker.client.identity import now_ms
from core_broker.client.namespaces import with_namespace
from core_broker.client.service import Service
from core_broker.client.subscription import MessageSelector, build_subscription
from core_broker.errors import ClientError
from core_broker.message.topics import retry_topic, validate_group, validate_topic
from core_broker.remoting.bodies import (
    EXPRESSION_TAG,
    SUBSCRIBE_ALL,
    ConsumerRunningInfo,
    MessageModel,
    MessageQueue,
    SubscriptionData,
)
from core_broker.remoting.client import RpcHook
from core_broker.remoting.tls_client import ClientTls


class PushConsumer(Service):
    """Consumes topics as a member of a consumer group.

        consumer = PushConsumer("group", "127.0.0.1:9876")
        consumer.subscribe("orders", "paid || shipped")

        @consumer.listener
        async def book(messages: list[MessageExt]) -> ConsumeStatus: ...

        async with consumer: ...

    A message is delivered at least once. The listener is an async function and returns a status
    for all messages of the call. RECONSUME_LATER, None and any exception mean "not consumed": the
    broker delivers the messages again later and, after ``max_reconsume_times``, moves the messages
    to the group's dead-letter topic. Bodies are decompressed, topics are the original topics.

    With an ``orderly_listener`` each queue has one owner in the group, and messages of a queue are
    delivered in sequence. A failed message is delivered again after a pause, before the following
    messages of the queue.

    Belongs to the event loop of ``start``. A listener blocking the event loop also blocks
    heartbeats and pulls; run blocking work in a thread.
    """

    def __init__(
        self,
        group: str,
        namesrv_addr: str = "",
        hooks: Sequence[ClientHook] = (),
        *,
        message_model: MessageModel | None = None,
        namespace: str = "",
        settings: ConsumerSettings | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
        tls: ClientTls | None = None,
    ) -> None:
        self.group = with_namespace(namespace, group)
        validate_group(self.group)
        settings = settings or ConsumerSettings()
        self._settings = replace(settings, model=message_model) if message_model else settings
        self._member = Member(
            self.group, namesrv_addr, namespace, tuple(hooks), tuple(rpc_hooks), tls
        )
        self._listener: AnyListener | None = None
        self._is_orderly = False
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._running: RunningConsumer | None = None

    def subscribe(
        self,
        topic: str,
        expression: str | MessageSelector = SUBSCRIBE_ALL,
        *,
        kind: str = EXPRESSION_TAG,
    ) -> None:
        """Subscribe to a topic, or change the filter expression; before the start or while running.

        All members of a group need equal subscriptions: brokers use the newest subscription.
        """
        topic = with_namespace(self._member.namespace, topic)
        validate_topic(topic)
        selector = expression
        if not isinstance(selector, MessageSelector):
            selector = MessageSelector(selector, kind)
        self._subscriptions[topic] = build_subscription(
            topic, selector.expression, version=now_ms(), kind=selector.kind
        )
        if self._running:
            self._running.subscriptions_changed()

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic; the next rebalance releases the topic's queues."""
        self._subscriptions.pop(with_namespace(self._member.namespace, topic), None)
        if self._running:
            self._running.subscriptions_changed()

    def listener(self, listener: Listener) -> Listener:
        """Set the concurrent listener; usable as a decorator."""
        self._listener, self._is_orderly = listener, False
        return listener

    def orderly_listener(self, listener: OrderlyListener) -> OrderlyListener:
        """Set the orderly listener, returning a ConsumeOrderlyStatus; usable as a decorator."""
        self._listener, self._is_orderly = listener, True
        return listener

    def suspend(self) -> None:
        """Stop pulling until ``resume``. Pulled messages are still consumed, and the consumer keeps
        the allocated queues."""
        self._started().suspended = True

    def resume(self) -> None:
        """Resume pulling."""
        self._started().suspended = False

    async def start(self) -> None:
        """Join the group. Works before any server is reachable; failures are logged.

        Raises RequestRefused when a reachable broker refuses an SQL92 expression.
        """
        if self._listener is None:
            raise ClientError(f"The consumer {self.group} has no listener.")
        if not self._subscriptions:
            raise ClientError(f"The consumer {self.group} has no subscription; call subscribe().")
        if self._running is not None:
            raise ClientError(f"The consumer {self.group} is running already.")
        if self._settings.model is MessageModel.CLUSTERING:
            own = retry_topic(self.group)
            self._subscriptions[own] = build_subscription(own, version=now_ms())
        running = RunningConsumer(
            self._member,
            self._settings,
            self._subscriptions,
            self._listener,
            is_orderly=self._is_orderly,
        )
        await running.check_filters()
        await running.start()
        self._running = running

    def _started(self) -> RunningConsumer:
        if self._running is None:
            raise ClientError(f"The consumer {self.group} is not running; call start() first.")
        return self._running

    async def stop(self) -> None:
        """Stop pulling, wait for running listeners, commit, unregister; may be called twice."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    @property
    def client_id(self) -> str:
        """The client id of the running consumer; "" when stopped."""
        return self._running.instance.client_id if self._running else ""

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues allocated to the member now."""
        return sorted(self._running.process_queues()) if self._running else []

    def running_info(self) -> ConsumerRunningInfo | None:
        """The running info as sent to tools (code 307); None when stopped."""
        return self._running.running_info() if self._running else None
