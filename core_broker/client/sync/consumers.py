"""The push consumer and the lite pull consumer without ``await``."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

from core_broker.client.consumer import lite_pull_consumer, push_consumer
from core_broker.client.consumer.running_lite_pull import QueuesListener
from core_broker.client.consumer.settings import ConsumerSettings
from core_broker.client.results import (
    ConsumeOrderlyStatus,
    ConsumeStatus,
    ReconsumeLater,
    SuspendQueue,
)
from core_broker.client.subscription import MessageSelector
from core_broker.client.sync.background import SyncClient
from core_broker.client.sync.listener_threads import ListenerThreads
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import SUBSCRIBE_ALL, MessageQueue

T = TypeVar("T")

Listener = Callable[[list[MessageExt]], ConsumeStatus | ReconsumeLater | None]
OrderlyListener = Callable[[list[MessageExt]], ConsumeOrderlyStatus | SuspendQueue | None]


class PushConsumer(SyncClient):
    """`core_broker.client.PushConsumer` for threads; takes the same options.

    The listener is a plain function, called on ``concurrency`` threads. A call longer than
    ``consume_timeout_ms`` cannot be stopped: the messages are retried while the call continues.
    """

    def __init__(self, group: str, namesrv_addr: str = "", **options: Any) -> None:
        super().__init__()
        settings = options.get("settings") or ConsumerSettings()
        self._concurrency: int = settings.concurrency
        self._threads: ListenerThreads[Any, Any] | None = None
        self._consumer = push_consumer.PushConsumer(group, namesrv_addr, **options)

    @property
    def client_id(self) -> str:
        return self._consumer.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues allocated to the member now."""
        return self._run(_on_loop(lambda: self._consumer.queues))

    def subscribe(self, topic: str, expression: str | MessageSelector = SUBSCRIBE_ALL) -> None:
        """Subscribe to a topic, or change the expression; before the start or while running."""
        self._run(_on_loop(lambda: self._consumer.subscribe(topic, expression)))

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic."""
        self._run(_on_loop(lambda: self._consumer.unsubscribe(topic)))

    def suspend(self) -> None:
        """Stop pulling until ``resume``."""
        self._run(_on_loop(self._consumer.suspend))

    def resume(self) -> None:
        """Resume pulling."""
        self._run(_on_loop(self._consumer.resume))

    def listener(self, listener: Listener) -> Listener:
        """Set the concurrent listener; usable as a decorator."""
        self._threads = ListenerThreads(self._consumer.group, listener, self._concurrency)
        self._consumer.listener(self._threads)
        return listener

    def orderly_listener(self, listener: OrderlyListener) -> OrderlyListener:
        """Set the orderly listener; usable as a decorator."""
        self._threads = ListenerThreads(self._consumer.group, listener, self._concurrency)
        self._consumer.orderly_listener(self._threads)
        return listener

    async def _start(self) -> None:
        await self._consumer.start()

    async def _stop(self) -> None:
        await self._consumer.stop()
        if self._threads is not None:
            self._threads.end()


class LitePullConsumer(SyncClient):
    """`core_broker.client.LitePullConsumer` for threads; takes the same options."""

    def __init__(self, group: str, namesrv_addr: str = "", **options: Any) -> None:
        super().__init__()
        self._consumer = lite_pull_consumer.LitePullConsumer(group, namesrv_addr, **options)
        self._failed = False

    @property
    def client_id(self) -> str:
        return self._consumer.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues allocated to the member now."""
        return self._run(_on_loop(lambda: self._consumer.queues))

    def subscribe(self, topic: str, expression: str | MessageSelector = SUBSCRIBE_ALL) -> None:
        """Subscribe to a topic, or change the filter expression."""
        self._run(_on_loop(lambda: self._consumer.subscribe(topic, expression)))

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic."""
        self._run(_on_loop(lambda: self._consumer.unsubscribe(topic)))

    def assign(
        self, queues: Iterable[MessageQueue], expression: str | MessageSelector = SUBSCRIBE_ALL
    ) -> None:
        """Consume exactly the given queues."""
        self._run(_on_loop(lambda: self._consumer.assign(queues, expression)))

    def on_queues_changed(self, topic: str, listener: QueuesListener) -> None:
        """Call a function when the queues of a topic change. The function runs on the background
        thread, so calls of sync clients in the function fail."""
        self._consumer.on_queues_changed(topic, listener)

    def poll(self, timeout_ms: int | None = None) -> list[MessageExt]:
        """The next messages of one queue; an empty list after the timeout."""
        return self._run(self._consumer.poll(timeout_ms))

    def __iter__(self) -> Iterator[MessageExt]:
        """Iterate over the messages until the consumer is stopped."""
        while self in self._background.clients:
            yield from self.poll()

    def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Commit all polled messages, or the given offsets."""
        self._run(self._consumer.commit(offsets))

    def committed(self, queue: MessageQueue) -> int | None:
        """The group's committed offset of a queue; None without a committed offset."""
        return self._run(self._consumer.committed(queue))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at an offset with the next poll."""
        self._run(self._consumer.seek(queue, offset))

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue with the oldest message."""
        self._run(self._consumer.seek_to_begin(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue with the next message stored from now on."""
        self._run(self._consumer.seek_to_end(queue))

    def seek_to_time(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """Continue with the first message stored at or after a time."""
        self._run(self._consumer.seek_to_time(queue, timestamp_ms))

    def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at or after a time."""
        return self._run(self._consumer.offset_for_timestamp(queue, timestamp_ms))

    def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, including queues of other members."""
        return self._run(self._consumer.fetch_queues(topic))

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Do not return messages of the queues from ``poll``."""
        self._run(_on_loop(lambda: self._consumer.pause(queues)))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Resume paused queues."""
        self._run(_on_loop(lambda: self._consumer.resume(queues)))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an error the messages of the last poll may be unprocessed.
        self._failed = error is not None
        self.stop()

    async def _start(self) -> None:
        await self._consumer.start()

    async def _stop(self) -> None:
        await self._consumer._stop(last_poll_consumed=not self._failed)

    def _stop_at_exit(self) -> None:
        # Without an explicit stop the messages of the last poll may be unprocessed.
        self._failed = True
        super()._stop_at_exit()


async def _on_loop(work: Callable[[], T]) -> T:
    """Run plain functions on the loop's thread too, because clients are not thread-safe."""
    return work()
