"""Send the messages of one task: batches in one request, several requests in flight.

Requests to one queue run sequentially, in row order. Requests without a fixed queue run
concurrently, and the producer retries a failed request at another queue. When the broker refuses
a batch as illegal or too large, the sink sends both halves: a refused batch stored no message.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final, TypeVar

from core_broker.client import Message, MessageQueue, Producer, ProducerSettings
from core_broker.client.selectors import by_hash
from core_broker.client.sending import split_batch
from core_broker.errors import GantryError, RequestRefused
from core_broker.remoting.codes import ResponseCode
from spark_jobs.sources.queues import WriteError, with_retries
from spark_jobs.sources.sink_rows import Placement, Row, RowReader
from spark_jobs.sources.write_options import WriteOptions

if TYPE_CHECKING:
    from pyarrow import RecordBatch

T = TypeVar("T")

#: Refusals that a pause does not change, with the remedy.
_REMEDIES: Final[dict[int, str]] = {
    ResponseCode.TOPIC_NOT_EXIST: "Create the topic, or change the option or column topic.",
    ResponseCode.NO_PERMISSION: "Check accessKey and secretKey, and the perm of the topic.",
    ResponseCode.MESSAGE_ILLEGAL: "Set maxMessageBytes to the maxMessageSize of the broker.",
}


class _BatchRefused(Exception):
    """The broker refused a request with several messages as illegal or too large."""


async def send_rows(options: WriteOptions, batches: "Iterator[RecordBatch]") -> int:
    """Send the rows of a task; returns the number of messages after the last acknowledgement.

    Memory: one record batch, the messages of one chunk, and `maxRequestsInFlight` requests. Raises
    WriteError for the first failed row or request; later requests are not sent.
    """
    settings = ProducerSettings(
        send_timeout_ms=options.request_timeout_ms, message_bytes_max=options.message_bytes_max
    )
    reader = RowReader(options)
    async with Producer(
        options.group,
        options.namesrv,
        settings=settings,
        rpc_hooks=options.hooks,
        tls=options.tls,
    ) as producer:
        sends = _Sends(producer, options)
        try:
            # A thread waits for the rows, so that the event loop handles answers in the meantime.
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                for by_topic in reader.chunks(batch):
                    for topic, rows in by_topic.items():
                        await sends.add(topic, rows)
            return await sends.finish()
        finally:
            await sends.cancel()


class _Sends:
    """The requests of one task."""

    def __init__(self, producer: Producer, options: WriteOptions) -> None:
        self._producer = producer
        self._options = options
        self._slots = asyncio.Semaphore(options.requests_in_flight_max)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: Exception | None = None
        self._sent = 0
        #: Writable queues by topic. Fixed for the task: equal ordering values keep their queue.
        self._queues: dict[str, list[MessageQueue]] = {}
        self._locks: dict[MessageQueue, asyncio.Lock] = {}

    async def add(self, topic: str, rows: Sequence[Row]) -> None:
        """Begin the requests of rows; waits for a free slot. Raises the first failure."""
        groups: dict[MessageQueue | None, list[Message]] = {}
        for message, placement in rows:
            queue = None
            if placement.order is not None or placement.queue_id is not None:
                queue = _queue_of(message, placement, await self._topic_queues(topic))
            groups.setdefault(queue, []).append(message)
        for queue, messages in groups.items():
            for part in split_batch(messages, self._options.request_bytes_max):
                await self._slots.acquire()
                if self._failure is not None:
                    raise self._failure
                task = asyncio.create_task(self._run(topic, queue, part))
                self._tasks.add(task)
                task.add_done_callback(self._ended)

    async def finish(self) -> int:
        """Wait for all requests; returns the number of acknowledged messages."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._failure is not None:
            raise self._failure
        return self._sent

    async def cancel(self) -> None:
        """Cancel the running requests after a failure."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _topic_queues(self, topic: str) -> list[MessageQueue]:
        queues = self._queues.get(topic)
        if queues is None:
            queues = self._queues[topic] = await self._retried(
                topic, None, lambda: self._producer.queues(topic)
            )
        return queues

    async def _run(
        self, topic: str, queue: MessageQueue | None, messages: Sequence[Message]
    ) -> None:
        # asyncio.Lock is fair: the requests of a queue run in the order of their creation.
        turn = nullcontext() if queue is None else self._locks.setdefault(queue, asyncio.Lock())
        try:
            async with turn:
                if self._failure is None:
                    try:
                        await self._send(topic, queue, messages)
                    except Exception as error:
                        # Set before the lock is released: the next request of the queue must not
                        # overtake the failed request.
                        self._failure = self._failure or error
                        raise
        finally:
            self._slots.release()

    async def _send(
        self, topic: str, queue: MessageQueue | None, messages: Sequence[Message]
    ) -> None:
        async def request() -> object:
            if len(messages) > 1:
                if queue is None:
                    return await self._producer.send_batch(messages)
                return await self._producer.send_batch_to(messages, queue)
            if queue is None:
                return await self._producer.send(messages[0])
            return await self._producer.send_to(messages[0], queue)

        try:
            await self._retried(topic, queue, request, is_batch=len(messages) > 1)
        except _BatchRefused:
            middle = len(messages) // 2
            await self._send(topic, queue, messages[:middle])
            await self._send(topic, queue, messages[middle:])
        else:
            self._sent += len(messages)

    async def _retried(
        self,
        topic: str,
        queue: MessageQueue | None,
        request: Callable[[], Awaitable[T]],
        *,
        is_batch: bool = False,
    ) -> T:
        """Retry a request for `retryTimeoutMs`; a WriteError names topic, queue and remedy."""
        target = f"topic {topic}, " + (
            f"queue {queue.queue_id} of {queue.broker_name}" if queue else "any queue"
        )

        async def attempt() -> T:
            try:
                return await request()
            except RequestRefused as refused:
                if is_batch and refused.code == ResponseCode.MESSAGE_ILLEGAL:
                    raise _BatchRefused from refused
                remedy = _REMEDIES.get(refused.code)
                if remedy is None:
                    raise
                raise WriteError(f"Cannot send to {target}: {refused} {remedy}") from refused

        timeout_ms = self._options.retry_timeout_ms
        try:
            return await with_retries(
                attempt, timeout_ms, f"sending to {target} (retryTimeoutMs)", failure=WriteError
            )
        except WriteError:
            raise
        except GantryError as error:
            raise WriteError(f"Cannot send to {target}: {error}") from error

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved; `finish` raises the first failure


def _queue_of(
    message: Message, placement: Placement, queues: Sequence[MessageQueue]
) -> MessageQueue:
    """The queue of a row; raises WriteError for a queue that the topic does not have."""
    if placement.order is not None:
        return by_hash(queues, message, placement.order)
    named = [
        queue
        for queue in queues
        if queue.queue_id == placement.queue_id
        and placement.broker_name in {None, queue.broker_name}
    ]
    if not named:
        brokers = ", ".join(sorted({queue.broker_name for queue in queues}))
        broker = f" of {placement.broker_name[:80]}" if placement.broker_name else ""
        raise WriteError(
            f"The topic {message.topic} has no writable queue {placement.queue_id}{broker}; "
            f"change the columns queue_id and broker_name. Brokers: {brokers}."
        )
    if len(named) > 1:
        brokers = ", ".join(queue.broker_name for queue in named)
        raise WriteError(
            f"The topic {message.topic} has a queue {placement.queue_id} on several brokers: "
            f"{brokers}. Add the column broker_name."
        )
    return named[0]
