"""What every consumer that shares queues has in common, put together: what it owns, how it starts
and ends. A push consumer and a polled one differ in where pulled messages go."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core_broker.client.consumer.broker_requests import BrokerRequests, Call
from core_broker.client.consumer.membership import Membership
from core_broker.client.consumer.offset_stores import BrokerOffsets, LocalOffsets, OffsetStore
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.puller import PullContext
from core_broker.client.consumer.queue_locks import LOCK_RENEW_INTERVAL_S, QueueLocks
from core_broker.client.consumer.queue_offsets import QueueOffsets, StartOffsets
from core_broker.client.consumer.rebalance import PAUSE_WHEN_INCOMPLETE_S, Rebalancer
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import ClientHook, HookChain
from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
from core_broker.client.loops import Loop
from core_broker.client.settings import GroupSettings
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
#: A broadcasting consumer finds its local offsets again by a client id that does not change.
BROADCAST_INSTANCE_NAME = "DEFAULT"


@dataclass(frozen=True, slots=True)
class Member:
    """Who joins, and how it reaches the cluster."""

    group: str
    namesrv_addr: str
    namespace: str = ""
    hooks: Sequence[ClientHook] = ()
    rpc_hooks: Sequence[RpcHook] = ()


class GroupMember:
    """Lives from start to stop of a consumer. Its tasks know it, but not the consumer, so that one
    which is dropped without a stop can still complain."""

    def __init__(
        self,
        member: Member,
        settings: GroupSettings,
        subscriptions: Mapping[str, SubscriptionData],
        consume_type: ConsumeType,
    ) -> None:
        self.group = member.group
        self.namespace = member.namespace
        self._settings = settings
        self._subscriptions = subscriptions
        self._consume_type = consume_type
        self._hooks = HookChain(member.hooks)
        self._started_ms = now_ms()
        self._stats: dict[str, ConsumerStats] = defaultdict(ConsumerStats)
        broadcasting = settings.model is MessageModel.BROADCASTING
        self.instance = ClientInstance(
            member.namesrv_addr,
            name=f"consumer {self.group}",
            instance_name=BROADCAST_INSTANCE_NAME if broadcasting else None,
            heartbeat=self._heartbeat,
            dispatch=self._dispatch,
            rpc_hooks=member.rpc_hooks,
        )
        self.offsets = offset_store(self.instance, self.group, settings)
        self.queue_offsets = QueueOffsets(self.instance)
        self._membership = Membership(self.instance, self.group, settings)
        self._locks: QueueLocks | None = None

    def _assemble(
        self,
        context: PullContext,
        *,
        call: Call | None,
        is_orderly: bool = False,
        topics: Callable[[], Iterable[str]] | None = None,
        allocated: Callable[[str], Awaitable[list[MessageQueue]]] | None = None,
    ) -> None:
        """Put the parts around where messages go; called once by each kind of consumer."""
        group, settings = self.group, self._settings
        self._rebalancer = Rebalancer(
            context,
            topics=topics or (lambda: self._subscriptions),
            allocated=allocated or self._membership.allocated,
            start_offset=StartOffsets(self.offsets, self.queue_offsets, settings),
            locks=self._locks,
        )
        self._rebalances = Loop(
            f"consumer {group} rebalance", settings.rebalance_interval_s, self._rebalancer.run_once
        )
        self._commits = Loop(
            f"consumer {group} commit",
            settings.commit_interval_s,
            self._rebalancer.persist,
            first_delay_s=settings.commit_interval_s,
        )
        self._renewals = Loop(
            f"consumer {group} locks",
            LOCK_RENEW_INTERVAL_S,
            self._renew_locks,
            first_delay_s=LOCK_RENEW_INTERVAL_S,
        )
        self._requests = BrokerRequests(
            group,
            rebalance=self._rebalances.wake,
            reset=self._rebalancer.reset,
            queues=lambda: list(self._rebalancer.process_queues),
            offsets=self.offsets,
            running_info=self.running_info,
            call=call,
            is_orderly=is_orderly,
            namespace=self.namespace,
        )

    async def start(self) -> None:
        """Begin; no server needs to be there yet."""
        await self._hooks.start(self.instance.namesrv_addr, self.group, "CONSUME")
        self.instance.start()
        self._rebalances.start()
        self._commits.start()
        if self._locks:
            self._renewals.start()

    async def stop(self) -> None:
        """Pull no more, let running listeners end, commit, take leave."""
        await self._rebalances.stop()
        await self._rebalancer.stop_pulling()
        await self._requests.stop()
        await self._drain()
        await self._commits.stop()
        await self._renewals.stop()
        await self._rebalancer.persist()
        await self._rebalancer.unlock_all()
        await self._hooks.stop()
        await self.instance.stop()

    async def _drain(self) -> None:
        """Let what was handed to the application come to an end."""

    def subscriptions_changed(self) -> None:
        """Tell the brokers and consume accordingly."""
        self.instance.wake_heartbeats()
        self._rebalances.wake()

    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        return self._rebalancer.process_queues

    def running_info(self) -> ConsumerRunningInfo:
        """What the consumer tells about itself in answer to code 307."""
        now = now_ms()
        locked_ms = self._locks.locked_ms if self._locks else (lambda _: 0)
        return ConsumerRunningInfo(
            properties={
                "PROP_NAMESERVER_ADDR": self.instance.namesrv_addr,
                "PROP_CLIENT_VERSION": CLIENT_VERSION,
                "PROP_CONSUME_TYPE": self._consume_type,
                "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
                "consumerGroup": self.group,
                "messageModel": self._settings.model,
                "consumeFromWhere": self._settings.consume_from,
                "pullBatchSize": str(self._settings.pull_count),
                **self._own_properties(),
            },
            subscription_set=list(self._subscriptions.values()),
            mq_table={
                queue: process_queue.info(self.offsets.remembered(queue) or 0, locked_ms(queue))
                for queue, process_queue in self._rebalancer.process_queues.items()
            },
            status_table={topic: stats.status(now) for topic, stats in self._stats.items()},
        )

    def _own_properties(self) -> dict[str, str]:
        """What only this kind of consumer has to tell."""
        return {}

    def _heartbeat(self, client_id: str) -> HeartbeatData:
        return HeartbeatData(
            client_id=client_id,
            consumer_data_set=[
                ConsumerData(
                    group_name=self.group,
                    consume_type=self._consume_type,
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

    async def _renew_locks(self) -> None:
        assert self._locks is not None
        lost = await self._locks.renew(list(self._rebalancer.process_queues))
        if lost:
            self._rebalancer.drop_lost(lost)
            self._rebalances.wake()


def offset_store(instance: ClientInstance, group: str, settings: GroupSettings) -> OffsetStore:
    """Where a group's offsets are: on the brokers, or with this member when it broadcasts."""
    if settings.model is MessageModel.CLUSTERING:
        return BrokerOffsets(instance, group)
    folder = settings.local_offsets or Path.home() / ".rocketmq_offsets"
    return LocalOffsets(folder, instance.client_id, group)
