"""The common base of started push and lite pull consumers: their parts, start and stop. The two
kinds differ in the destination of pulled messages."""

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
from core_broker.client.consumer.settings import GroupSettings
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import ClientHook, HookChain
from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
from core_broker.client.loops import Loop
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
from core_broker.remoting.tls_client import ClientTls

CLIENT_VERSION = "V4_9_8"
#: Fixed instance name of broadcasting consumers: the path of local offsets contains the client id.
BROADCAST_INSTANCE_NAME = "DEFAULT"


@dataclass(frozen=True, slots=True)
class Member:
    """The arguments of a consumer: group, name servers, namespace, hooks, TLS."""

    group: str
    namesrv_addr: str
    namespace: str = ""
    hooks: Sequence[ClientHook] = ()
    rpc_hooks: Sequence[RpcHook] = ()
    tls: ClientTls | None = None


class GroupMember:
    """The running part of a consumer, from start to stop. Tasks reference the member and not the
    consumer: a consumer dropped without stop() is collected, and __del__ warns."""

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
            tls=member.tls,
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
        """Build the parts around the destination of messages; called once by each subclass."""
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
        """Start; works before any server is reachable."""
        await self._hooks.start(self.instance.namesrv_addr, self.group, "CONSUME")
        self.instance.start()
        self._rebalances.start()
        self._commits.start()
        if self._locks:
            self._renewals.start()

    async def stop(self) -> None:
        """Stop pulling, wait for running listeners, commit, unlock, unregister."""
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
        """Wait for the application to finish delivered messages."""

    def subscriptions_changed(self) -> None:
        """Send heartbeats with the new subscriptions, and rebalance."""
        self.instance.wake_heartbeats()
        self._rebalances.wake()

    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        return self._rebalancer.process_queues

    def running_info(self) -> ConsumerRunningInfo:
        """The consumer's answer to GET_CONSUMER_RUNNING_INFO (307)."""
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
                queue: process_queue.info(self.offsets.cached(queue) or 0, locked_ms(queue))
                for queue, process_queue in self._rebalancer.process_queues.items()
            },
            status_table={topic: stats.status(now) for topic, stats in self._stats.items()},
        )

    def _own_properties(self) -> dict[str, str]:
        """Additional properties of a kind of consumer in the running info."""
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

    def _correct_offset(self, process_queue: ProcessQueue, offset: int) -> None:
        self._rebalancer.reset({process_queue.queue: offset})
        # Rebalance after a pause: repeated answers of this kind must not cause a busy loop.
        asyncio.get_running_loop().call_later(PAUSE_WHEN_INCOMPLETE_S, self._rebalances.wake)

    async def _renew_locks(self) -> None:
        assert self._locks is not None
        lost = await self._locks.renew(list(self._rebalancer.process_queues))
        if lost:
            self._rebalancer.drop_lost(lost)
            self._rebalances.wake()


def offset_store(instance: ClientInstance, group: str, settings: GroupSettings) -> OffsetStore:
    """The offset store of a group: on the brokers when clustering, a local file when
    broadcasting."""
    if settings.model is MessageModel.CLUSTERING:
        return BrokerOffsets(instance, group)
    folder = settings.local_offsets or Path.home() / ".rocketmq_offsets"
    return LocalOffsets(folder, instance.client_id, group)
