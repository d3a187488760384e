"""The route table: brokers, their addresses, their topics, and the live brokers.

    topics    topic -> broker name -> QueueData
    brokers   broker name -> BrokerData (cluster, id -> address)
    clusters  cluster -> broker names
    live      address -> LiveBroker (last heartbeat, data version, connection)
    served    broker name -> topics of the broker, the reverse of `topics`

A broker is live while it registers or queries its data version at least every 120 s and keeps the
connection open. The table is pure: time comes in as `now_ms`, connections are only compared.
Compatible with RocketMQ's RouteInfoManager.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from core_broker.remoting.bodies import (
    MASTER_ID,
    PERM_READ,
    PERM_WRITE,
    BrokerData,
    ClusterInfo,
    DataVersion,
    QueueData,
    TopicConfig,
    TopicRouteData,
)

#: Maximum time between heartbeats of a live broker.
BROKER_EXPIRY_MS = 120_000

# Bits of topicSysFlag.
UNIT = 1
UNIT_SUBSCRIPTION = 2


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """Identity of a broker in the headers of codes 103, 104 and 322."""

    cluster: str
    name: str
    broker_id: int
    addr: str


class BrokerLink(Protocol):
    """The connection of a registration; the table compares it, the server closes it."""

    def close(self, reason: str) -> None: ...


@dataclass(slots=True)
class LiveBroker:
    """The last registration and heartbeat of a broker address."""

    name: str
    connection: BrokerLink
    last_update_ms: int
    data_version: DataVersion
    ha_server_addr: str
    filter_servers: list[str]
    #: Digest of the registration; an equal registration is not decoded again.
    digest: bytes = b""


@dataclass(frozen=True, slots=True)
class MasterOfSlave:
    """The master in the registration response of a slave; empty for a master."""

    master_addr: str | None = None
    ha_server_addr: str | None = None


class RouteTable:
    """All routes of the registered clusters, in memory only."""

    def __init__(self) -> None:
        self.topics: dict[str, dict[str, QueueData]] = {}
        self.brokers: dict[str, BrokerData] = {}
        self.clusters: dict[str, set[str]] = {}
        self.live: dict[str, LiveBroker] = {}
        self._served: dict[str, set[str]] = {}
        self._changed: set[str] = set()

    def invalidate(self) -> None:
        """Mark all routes as changed, for a reason outside of the table."""
        self._changed.update(self.topics)

    def take_changed(self) -> set[str]:
        """Return the topics whose routes may have changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def register(
        self,
        identity: BrokerIdentity,
        live: LiveBroker,
        topics: Iterable[TopicConfig],
    ) -> MasterOfSlave:
        """Add or refresh a broker; return the master for a slave.

        Topics are taken from a master only, when the master is new or its data version changed.
        Absent topics stay, because registrations may be partial. A master of an older epoch than
        the living master (RocketMQ 5's stateVersion) is not entered: controllers have replaced it.
        """
        if self._is_outdated(identity, live):
            if identity.addr in self.live:
                self._remove(identity.addr)
            return MasterOfSlave()
        known = self.live.get(identity.addr)
        if known is not None and known.name != identity.name:
            # The broker was renamed; RocketMQ would keep the routes of the old name.
            self._remove(identity.addr)
            known = None
        is_new = self._enter_broker(identity)
        changed = known is None or known.data_version != live.data_version
        if identity.broker_id == MASTER_ID and (is_new or changed):
            for topic in topics:
                self._enter_topic(identity.name, topic)
        if known is None or known.filter_servers != live.filter_servers:
            self._touch(identity.name)
        self.live[identity.addr] = live
        if identity.broker_id == MASTER_ID:
            return MasterOfSlave()
        return self._master_of(identity.name)

    def _is_outdated(self, identity: BrokerIdentity, live: LiveBroker) -> bool:
        broker = self.brokers.get(identity.name)
        addr = None if broker is None else broker.broker_addrs.get(identity.broker_id)
        other = None if addr in (None, identity.addr) else self.live.get(addr or "")
        if other is None:
            return False
        return (other.data_version.state_version or 0) > (live.data_version.state_version or 0)

    def is_in_place(self, identity: BrokerIdentity) -> bool:
        """Return whether the routes contain the address of the broker under its id."""
        broker = self.brokers.get(identity.name)
        return broker is not None and broker.broker_addrs.get(identity.broker_id) == identity.addr

    def unregister(self, identity: BrokerIdentity) -> None:
        """Remove a broker that unregisters.

        RocketMQ removes any address under the id. Here the address must be equal, so that the late
        unregistration of a replaced process does not remove the new process.
        """
        live = self.live.get(identity.addr)
        if live is not None and live.name == identity.name:
            self._remove(identity.addr)

    def connection_lost(self, connection: BrokerLink) -> list[str]:
        """Remove the brokers registered over the connection; return their addresses."""
        gone = [addr for addr, live in self.live.items() if live.connection is connection]
        for addr in gone:
            self._remove(addr)
        return gone

    def expire(self, now_ms: int) -> list[LiveBroker]:
        """Remove the brokers without a heartbeat for BROKER_EXPIRY_MS; return the brokers."""
        limit = now_ms - BROKER_EXPIRY_MS
        gone = [addr for addr, live in self.live.items() if live.last_update_ms < limit]
        return [self._remove(addr) for addr in gone]

    def refresh(self, addr: str, now_ms: int) -> None:
        """Record a heartbeat of a broker with unchanged topics."""
        if addr in self.live:
            self.live[addr].last_update_ms = now_ms

    def data_version(self, addr: str) -> DataVersion | None:
        """Return the data version of the last registration from the address."""
        live = self.live.get(addr)
        return None if live is None else live.data_version

    def route(self, topic: str) -> TopicRouteData | None:
        """Return the brokers and queues of a topic, or None when no broker serves the topic."""
        queues = self.topics.get(topic)
        brokers = [self.brokers[name] for name in queues or () if name in self.brokers]
        if not queues or not brokers:
            return None
        filters = {
            addr: self.live[addr].filter_servers
            for broker in brokers
            for addr in broker.broker_addrs.values()
            if addr in self.live and self.live[addr].filter_servers
        }
        return TopicRouteData(
            queue_datas=list(queues.values()), broker_datas=brokers, filter_server_table=filters
        )

    def cluster_info(self) -> ClusterInfo:
        """Return all brokers and clusters."""
        members = {cluster: sorted(names) for cluster, names in self.clusters.items()}
        return ClusterInfo(broker_addr_table=self.brokers, cluster_addr_table=members)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Return the topics that a broker of the cluster serves."""
        members = self.clusters.get(cluster, set())
        return [topic for topic, queues in self.topics.items() if not members.isdisjoint(queues)]

    def system_topics(self) -> tuple[list[str], str | None]:
        """Return the cluster and broker names, which are topics, and the address of a broker.

        The client requests the system topics of brokers from this address.
        """
        names = [name for cluster, members in self.clusters.items() for name in (cluster, *members)]
        addrs = (addr for broker in self.brokers.values() for addr in broker.broker_addrs.values())
        return names, next(addrs, None)

    def topics_by_flag(self, matches: Callable[[int], bool]) -> list[str]:
        """Return the topics whose first broker's topicSysFlag matches."""
        return [
            topic
            for topic, queues in self.topics.items()
            if matches(next(iter(queues.values())).topic_sys_flag)
        ]

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Remove a topic from all brokers, or from the brokers of one cluster."""
        members = self.topics.keys() if cluster is None else self.clusters.get(cluster, set())
        queues = self.topics.get(topic, {})
        for broker in [name for name in queues if cluster is None or name in members]:
            self._drop_queues(topic, broker)

    def wipe_write_perm(self, broker: str) -> int:
        """Remove the write permission of all topics of a broker; return the number of topics."""
        return self._change_perm(broker, lambda perm: perm & ~PERM_WRITE)

    def add_write_perm(self, broker: str) -> int:
        """Make all topics of a broker readable and writable; return the number of topics."""
        return self._change_perm(broker, lambda _: PERM_READ | PERM_WRITE)

    def _enter_broker(self, identity: BrokerIdentity) -> bool:
        broker = self.brokers.get(identity.name)
        if broker is not None and broker.cluster != identity.cluster:
            self._leave_clusters(identity.name)
            broker.cluster = identity.cluster
            self._touch(identity.name)
        self.clusters.setdefault(identity.cluster, set()).add(identity.name)
        if broker is None:
            broker = BrokerData(
                cluster=identity.cluster, broker_name=identity.name, broker_addrs={}
            )
            self.brokers[identity.name] = broker
        addrs = broker.broker_addrs
        # A slave that became master registers with the same address under another id.
        for other in [key for key, addr in addrs.items() if addr == identity.addr]:
            if other != identity.broker_id:
                del addrs[other]
        before = addrs.get(identity.broker_id)
        if before != identity.addr:
            addrs[identity.broker_id] = identity.addr
            self._touch(identity.name)
        return before is None

    def _enter_topic(self, broker: str, topic: TopicConfig) -> None:
        fresh = QueueData(
            broker_name=broker,
            read_queue_nums=topic.read_queue_nums,
            write_queue_nums=topic.write_queue_nums,
            perm=topic.perm,
            topic_sys_flag=topic.topic_sys_flag,
        )
        queues = self.topics.setdefault(topic.topic_name, {})
        if queues.get(broker) != fresh:
            queues[broker] = fresh
            self._served.setdefault(broker, set()).add(topic.topic_name)
            self._changed.add(topic.topic_name)

    def _master_of(self, name: str) -> MasterOfSlave:
        addr = self.brokers[name].broker_addrs.get(MASTER_ID)
        master = self.live.get(addr) if addr is not None else None
        return MasterOfSlave() if master is None else MasterOfSlave(addr, master.ha_server_addr)

    def _remove(self, addr: str) -> LiveBroker:
        live = self.live.pop(addr)
        # A broker whose id another address has taken is live, but not in `brokers`.
        broker = self.brokers.get(live.name)
        if broker is None:
            return live
        for broker_id in [key for key, other in broker.broker_addrs.items() if other == addr]:
            del broker.broker_addrs[broker_id]
            self._touch(live.name)
        if not broker.broker_addrs:
            self._forget_broker(live.name)
        return live

    def _forget_broker(self, name: str) -> None:
        del self.brokers[name]
        self._leave_clusters(name)
        for topic in list(self._served.get(name, ())):
            self._drop_queues(topic, name)

    def _leave_clusters(self, name: str) -> None:
        for cluster in [key for key, names in self.clusters.items() if name in names]:
            self.clusters[cluster].discard(name)
            if not self.clusters[cluster]:
                del self.clusters[cluster]

    def _drop_queues(self, topic: str, broker: str) -> None:
        del self.topics[topic][broker]
        if not self.topics[topic]:
            del self.topics[topic]
        served = self._served[broker]
        served.discard(topic)
        if not served:
            del self._served[broker]
        self._changed.add(topic)

    def _touch(self, broker: str) -> None:
        """Mark the routes of all topics of a broker as changed."""
        self._changed.update(self._served.get(broker, ()))

    def _change_perm(self, broker: str, change: Callable[[int], int]) -> int:
        served = self._served.get(broker, set())
        for topic in served:
            queues = self.topics[topic]
            queues[broker] = replace(queues[broker], perm=change(queues[broker].perm))
        self._touch(broker)
        return len(served)
