"""Sending on behalf of a group: queue choice and retries within one time budget.

Used by producers, and by consumers for sending back messages.
"""

import asyncio
from collections.abc import Sequence

from core_broker.client.deadline import Deadline
from core_broker.client.hooks import HookChain, SendContext
from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
from core_broker.client.latency_faults import LatencyFaults
from core_broker.client.producer_settings import ProducerSettings
from core_broker.client.queue_choice import QueueChooser
from core_broker.client.results import SendResult, SendStatus
from core_broker.client.routes import lacks_masters, vip_addr
from core_broker.client.sending import Outgoing, read_send_answer
from core_broker.errors import (
    ClientError,
    ConnectFailed,
    RequestRefused,
    RequestTimeout,
    TransportError,
)
from core_broker.message.topics import RETRY_PREFIX
from core_broker.remoting.bodies import MessageQueue
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand

#: Pauses until a topic whose brokers have lost their masters has one again, seconds: controllers
#: elect another master within a second or so.
MASTER_PAUSES_S = (0.1, 0.2, 0.3, 0.4, 0.5, 0.5)


class Sender:
    """The sender of one client; uses the connections and routes of the client's instance."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        settings: ProducerSettings,
        hooks: HookChain,
    ) -> None:
        self._instance = instance
        self._group = group
        self._settings = settings
        self._hooks = hooks
        self._faults = LatencyFaults() if settings.send_latency_fault_enable else None
        self._chooser = QueueChooser(self._faults)

    async def announce(self, topic: str, deadline: Deadline) -> None:
        """Register the client at the brokers of a topic by heartbeats before the first send."""
        await self._writable_queues(topic, deadline)
        try:
            async with asyncio.timeout(deadline.left_ms() / 1000):
                await self._instance.announce()
        except TimeoutError:
            servers = ",".join(self._instance.routes.broker_addrs(masters_only=True))
            raise RequestTimeout(servers, RequestCode.HEART_BEAT, deadline.timeout_ms) from None

    async def send_oneway(self, outgoing: Outgoing) -> None:
        """Send without waiting for an answer; raises TransportError without a connection."""
        deadline = Deadline(self._settings.send_timeout_ms)
        queues = await self._writable_queues(outgoing.topic, deadline)
        queue = self._chooser.choose(outgoing.topic, queues, now_ms=now_ms())
        context, command = self._begin(outgoing, queue)
        try:
            await self._instance.remoting.oneway(context.broker_addr, command)
        except TransportError as error:
            context.error = error
            raise
        finally:
            self._end(context)

    async def queues(self, topic: str, timeout_ms: int | None) -> Sequence[MessageQueue]:
        """The writable queues of a topic; for an unknown topic, the queues after auto-creation."""
        return await self._writable_queues(
            topic, Deadline(timeout_ms or self._settings.send_timeout_ms)
        )

    async def send_to(
        self, outgoing: Outgoing, queue: MessageQueue, timeout_ms: int | None
    ) -> SendResult:
        """One attempt at one queue."""
        deadline = Deadline(timeout_ms or self._settings.send_timeout_ms)
        await self._writable_queues(outgoing.topic, deadline)
        return await self._try(outgoing, queue, deadline)

    async def send(self, outgoing: Outgoing, timeout_ms: int | None = None) -> SendResult:
        """Try queues until a broker stores the message. Raises the error of the last attempt, with
        a note of all tried brokers."""
        deadline = Deadline(timeout_ms or self._settings.send_timeout_ms)
        queues = await self._writable_queues(outgoing.topic, deadline)
        stored: SendResult | None = None
        failure: TransportError | RequestRefused | None = None
        tried: list[str] = []
        while len(tried) <= self._settings.retry_times and (deadline.left_ms() or not tried):
            last = tried[-1] if tried else None
            queue = self._chooser.choose(outgoing.topic, queues, last, now_ms=now_ms())
            tried.append(queue.broker_name)
            try:
                stored = await self._try(outgoing, queue, deadline)
            except TransportError as error:
                failure = error
            except RequestRefused as error:
                failure = error
                if error.code not in self._settings.retry_codes:
                    break
            else:
                stored_ok = stored.status is SendStatus.SEND_OK
                if stored_ok or not self._settings.retry_when_not_stored_ok:
                    break
        if stored is not None:
            return stored
        assert failure is not None
        failure.add_note(f"Tried {len(tried)} times, at: {', '.join(tried)}.")
        raise failure

    async def _try(self, outgoing: Outgoing, queue: MessageQueue, deadline: Deadline) -> SendResult:
        context, command = self._begin(outgoing, queue)
        addr = context.broker_addr
        try:
            answer = await self._instance.remoting.invoke(addr, command, deadline.left_ms())
            context.result = read_send_answer(answer, addr, outgoing, queue)
        except (TransportError, RequestRefused) as error:
            context.error = error
            if isinstance(error, ConnectFailed) or getattr(error, "route_stale", False):
                self._instance.routes.mark_stale(outgoing.topic)
            raise
        finally:
            self._end(context)
        return context.result

    def _begin(
        self, outgoing: Outgoing, queue: MessageQueue
    ) -> tuple[SendContext, RemotingCommand]:
        addr = self._instance.routes.master_addr(queue.broker_name)
        if addr is None:
            self._instance.routes.mark_stale(outgoing.topic)
            raise ConnectFailed(queue.broker_name, "no route names a master of the broker")
        if self._settings.vip_channel:
            addr = vip_addr(addr)
        context = SendContext(self._group, outgoing, queue, addr, now_ms())
        command = outgoing.request(
            queue,
            group=self._group,
            now_ms=context.started_ms,
            default_topic_queue_nums=self._settings.new_topic_queue_nums,
        )
        self._hooks.before_send(context)
        return context, command

    def _end(self, context: SendContext) -> None:
        now = now_ms()
        context.cost_ms = now - context.started_ms
        if self._faults is not None:
            if context.error is None:
                self._faults.record_latency(context.queue.broker_name, context.cost_ms, now)
            else:
                self._faults.record_failure(context.queue.broker_name, now)
        self._hooks.after_send(context)

    async def _writable_queues(self, topic: str, deadline: Deadline) -> Sequence[MessageQueue]:
        # Brokers create retry topics with one queue, before the name server knows the topic.
        is_retry = topic.startswith(RETRY_PREFIX)
        nums = 1 if is_retry else self._settings.new_topic_queue_nums
        routes = self._instance.routes
        try:
            async with asyncio.timeout(deadline.left_ms() / 1000):
                route = await routes.publish_route(topic, nums)
                for pause_s in MASTER_PAUSES_S:
                    if not lacks_masters(route.data):
                        break
                    routes.mark_stale(topic)
                    await asyncio.sleep(pause_s)
                    route = await routes.publish_route(topic, nums)
        except TimeoutError:
            code = RequestCode.GET_ROUTEINFO_BY_TOPIC
            servers = self._instance.namesrv_addr
            raise RequestTimeout(servers, code, deadline.timeout_ms) from None
        if not route.publish_queues:
            routes.mark_stale(topic)
            raise ClientError(f"The topic {topic} has no writable queue; check its perm.")
        return route.publish_queues
