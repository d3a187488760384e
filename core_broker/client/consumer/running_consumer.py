"""The parts of a started push consumer, put together: what it owns, how it starts and ends."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from core_broker.client.consumer.broker_requests import BrokerRequests
from core_broker.client.consumer.delivery import Delivery, Listener
from core_broker.client.consumer.offset_stores import BrokerOffsets, LocalOffsets, OffsetStore
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.puller import PullContext
from core_broker.client.consumer.rebalance import PAUSE_WHEN_INCOMPLETE_S, Rebalancer
from core_broker.client.consumer.send_back import SendBack
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import ClientHook, HookChain
from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
from core_broker.client.loops import Loop
from core_broker.client.sender import Sender
from core_broker.client.settings import ConsumerSettings, ProducerSettings
from core_broker.message.topics import CLIENT_INNER_PRODUCER_GROUP
from core_broker.remoting.bodies import (
    ConsumerData,
    ConsumerRunningInfo,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    MessageQueue,
    SubscriptionData,
)
from core_broker.remoting.client import RpcHook
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection

CLIENT_VERSION = "V4_9_8"
BROADCAST_INSTANCE_NAME = "DEFAULT"
"""A broadcasting consumer finds its local offsets again by a client id that does not change."""


class RunningConsumer:
    """Lives from start to stop of a PushConsumer. Its tasks know it, but not the PushConsumer, so
    that one which is dropped without a stop can still complain."""

    def __init__(
        self,
        group: str,
        namesrv_addr: str,
        settings: ConsumerSettings,
        subscriptions: Mapping[str, SubscriptionData],
        listener: Listener,
        hooks: Sequence[ClientHook],
        rpc_hooks: Sequence[RpcHook],
    ) -> None:
        self._group = group
        self._settings = settings
        self._subscriptions = subscriptions
        self._hooks = HookChain(hooks)
        self._started_ms = now_ms()
        self._stats: dict[str, ConsumerStats] = defaultdict(ConsumerStats)
        broadcasting = settings.model is MessageModel.BROADCASTING
        self.instance = ClientInstance(
            namesrv_addr,
            name=f"consumer {group}",
            instance_name=BROADCAST_INSTANCE_NAME if broadcasting else None,
            heartbeat=self._heartbeat,
            dispatch=self._dispatch,
            rpc_hooks=rpc_hooks,
        )
        self._offsets = self._offset_store()
        self._delivery = self._make_delivery(listener)
        self._rebalancer = Rebalancer(self._pull_context(), self._started_ms)
        self._rebalances = Loop(
            f"consumer {group} rebalance",
            settings.rebalance_interval_s,
            self._rebalancer.run_once,
        )
        self._commits = Loop(
            f"consumer {group} commit",
            settings.commit_interval_s,
            self._rebalancer.persist,
            first_delay_s=settings.commit_interval_s,
        )
        self._requests = BrokerRequests(
            group,
            rebalance=self._rebalances.wake,
            reset=self._rebalancer.reset,
            queues=lambda: list(self._rebalancer.process_queues),
            offsets=self._offsets,
            running_info=self.running_info,
            delivery=self._delivery,
        )

    async def start(self) -> None:
        """Begin; no server needs to be there yet."""
        await self._hooks.start(self.instance.namesrv_addr, self._group, "CONSUME")
        self._delivery.start()
        self.instance.start()
        self._rebalances.start()
        self._commits.start()

    async def stop(self) -> None:
        """Pull no more, let running listeners end, commit, take leave."""
        await self._rebalances.stop()
        await self._rebalancer.stop_pulling()
        await self._requests.stop()
        await self._delivery.stop()
        await self._commits.stop()
        await self._rebalancer.persist()
        await self._hooks.stop()
        await self.instance.stop()

    def subscriptions_changed(self) -> None:
        """Tell the brokers and consume accordingly."""
        self.instance.wake_heartbeats()
        self._rebalances.wake()

    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        return self._rebalancer.process_queues

    def running_info(self) -> ConsumerRunningInfo:
        """What the consumer tells about itself in answer to code 307."""
        now = now_ms()
        settings = self._settings
        return ConsumerRunningInfo(
            properties={
                "PROP_NAMESERVER_ADDR": self.instance.namesrv_addr,
                "PROP_CLIENT_VERSION": CLIENT_VERSION,
                "PROP_CONSUME_TYPE": ConsumeType.CONSUME_PASSIVELY,
                "PROP_CONSUMEORDERLY": "false",
                "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
                "PROP_THREADPOOL_CORE_SIZE": str(settings.concurrency),
                "consumerGroup": self._group,
                "messageModel": settings.model,
                "consumeFromWhere": settings.consume_from,
                "consumeMessageBatchMaxSize": str(settings.batch_max),
                "pullBatchSize": str(settings.pull_count),
                "maxReconsumeTimes": str(settings.max_reconsume_times),
            },
            subscription_set=list(self._subscriptions.values()),
            mq_table={
                queue: process_queue.info(self._offsets.remembered(queue) or 0)
                for queue, process_queue in self._rebalancer.process_queues.items()
            },
            status_table={topic: stats.status(now) for topic, stats in self._stats.items()},
        )

    def _make_delivery(self, listener: Listener) -> Delivery:
        settings = self._settings
        sender = Sender(
            self.instance, CLIENT_INNER_PRODUCER_GROUP, ProducerSettings(), HookChain(())
        )
        send_back = SendBack(self.instance, sender, self._group, settings.max_reconsume_times)
        return Delivery(
            self._group,
            listener,
            settings,
            offsets=self._offsets,
            give_back=send_back.give_back,
            hooks=self._hooks,
            stats=self._stats.__getitem__,
        )

    def _pull_context(self) -> PullContext:
        return PullContext(
            self.instance,
            self._group,
            self._settings,
            self._subscriptions,
            self._offsets,
            self._delivery,
            stats=self._stats.__getitem__,
            announce=self.instance.wake_heartbeats,
            moved=self._moved,
        )

    def _heartbeat(self, client_id: str) -> HeartbeatData:
        return HeartbeatData(
            client_id=client_id,
            consumer_data_set=[
                ConsumerData(
                    group_name=self._group,
                    consume_type=ConsumeType.CONSUME_PASSIVELY,
                    message_model=self._settings.model,
                    consume_from_where=self._settings.consume_from,
                    subscription_data_set=list(self._subscriptions.values()),
                )
            ],
        )

    def _dispatch(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        return self._requests.dispatch(connection, request)

    def _moved(self, process_queue: ProcessQueue, offset: int) -> None:
        self._rebalancer.reset({process_queue.queue: offset})
        # Not at once: a broker that keeps answering so must not be asked in a tight loop.
        asyncio.get_running_loop().call_later(PAUSE_WHEN_INCOMPLETE_S, self._rebalances.wake)

    def _offset_store(self) -> OffsetStore:
        if self._settings.model is MessageModel.CLUSTERING:
            return BrokerOffsets(self.instance, self._group)
        folder = self._settings.local_offsets or Path.home() / ".rocketmq_offsets"
        return LocalOffsets(folder, self.instance.client_id, self._group)
