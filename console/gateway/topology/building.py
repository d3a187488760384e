"""Nodes and edges from the answers of name servers and brokers. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from console.gateway.brokers.listing import BrokerRow
from console.gateway.clients import AllClients, ConnectedClient
from console.gateway.groups.listing import GroupRow
from console.gateway.groups.metrics import GroupMetrics
from console.gateway.metrics import sum_known
from console.gateway.topics.listing import TopicRow, topic_kind
from console.gateway.topology.model import NODE_KINDS, Edge, Node, State, Topology, key_of
from core_broker.message.topics import DLQ_PREFIX, is_system_group

#: Producer groups that clients open by themselves, for the messages that a consumer sends back and
#: for traces: RocketMQ's MixAll.CLIENT_INNER_PRODUCER_GROUP, TraceConstants.GROUP_NAME_PREFIX.
INNER_PRODUCER_PREFIXES = ("CLIENT_INNER_PRODUCER", "_INNER_TRACE_PRODUCER")


@dataclass(frozen=True, slots=True)
class Registered:
    """A name server: the brokers in its list, None if unknown; `down`: no answer now."""

    addr: str
    brokers: tuple[str, ...] | None
    down: bool


@dataclass(frozen=True, slots=True)
class TopicMeasures:
    """Put rates by topic and broker, consume rates by topic, lags by group and topic.

    A topic without an entry is unknown; `left_out` topics were not measured. `at_ms` is the time of
    the oldest metrics; 0: nothing was measured.
    """

    put_rates: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    out_rates: Mapping[str, float | None] = field(default_factory=dict)
    lags: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    at_ms: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class GroupMeasures:
    """Metrics by group, lags by group and topic, and consume rates by broker, group and topic.

    A group without an entry is unknown; `left_out` groups were not measured. A broker without an
    entry in `rates` reports no rates of topics; of other brokers, a missing rate is 0. `at_ms` is
    the time of the metrics; 0: nothing was measured.
    """

    metrics: Mapping[str, GroupMetrics] = field(default_factory=dict)
    lags: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    rates: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    at_ms: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Sources:
    """The answers to build from.

    `lost`: names of the brokers that do not answer, whose values are the last known ones.
    `current`: the lists of topics and groups are as new as the clients; with older lists, a new
    topic would be taken for a missing one.
    `dead_letters` by group lacks groups without dead letters; None: unknown.
    """

    name_servers: tuple[Registered, ...]
    brokers: tuple[BrokerRow, ...]
    topics: tuple[TopicRow, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    clients: AllClients = field(default_factory=lambda: AllClients((), 0))
    of_topics: TopicMeasures = field(default_factory=TopicMeasures)
    of_groups: GroupMeasures = field(default_factory=GroupMeasures)
    dead_letters: Mapping[str, int] | None = None
    lost: frozenset[str] = frozenset()
    current: bool = True
    complete: bool = True


def topology_of(sources: Sources) -> Topology:
    """Build the topology of all objects; the caller selects the shown ones."""
    builder = _Builder(sources)
    nodes = builder.nodes()
    order = {kind: number for number, kind in enumerate(NODE_KINDS)}
    nodes.sort(key=lambda node: (order[node.kind], node.name))
    known = {node.key for node in nodes}
    edges = [edge for edge in builder.edges() if edge.source in known and edge.target in known]
    measured_ms = [at_ms for at_ms in (sources.of_topics.at_ms, sources.of_groups.at_ms) if at_ms]
    return Topology(
        tuple(nodes),
        tuple(sorted(edges, key=lambda edge: edge.ends)),
        {row.name: row.brokers for row in sources.topics},
        sources.of_topics.left_out + sources.of_groups.left_out,
        sources.clients.left_out,
        sources.complete,
        min(measured_ms, default=None),
    )


class _Builder:
    """The parts of a topology, from one set of sources."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.topics = {row.name: row for row in sources.topics}
        self.groups = {row.name: row for row in sources.groups}
        #: Subscribed topics by group, of connected clients.
        self.subscribed: dict[str, set[str]] = {}
        #: Client ids by group.
        self.members: dict[str, set[str]] = {}
        #: Client ids by producer group and broker.
        self.producers: dict[str, dict[str, set[str]]] = {}
        for client in sources.clients.clients:
            self._read_client(client)
        self.metrics = sources.of_groups.metrics
        self.lags = {**sources.of_topics.lags, **sources.of_groups.lags}
        at_ms = sources.of_groups.at_ms
        self.behind = {name: each.is_behind(at_ms) for name, each in self.metrics.items()}
        self.lag_of_topic: dict[str, int] = {}
        for lags in self.lags.values():
            for topic, lag in lags.items():
                if lag is not None:
                    self.lag_of_topic[topic] = max(lag, self.lag_of_topic.get(topic, 0))

    def _read_client(self, client: ConnectedClient) -> None:
        for group, topics in client.groups.items():
            self.subscribed.setdefault(group, set()).update(topics)
            self.members.setdefault(group, set()).add(client.name)
        for group in client.producer_groups:
            by_broker = self.producers.setdefault(group, {})
            for broker in client.brokers:
                by_broker.setdefault(broker, set()).add(client.name)

    def nodes(self) -> list[Node]:
        nodes = [self._name_server(one) for one in self.sources.name_servers]
        by_name: dict[str, list[BrokerRow]] = {}
        for row in self.sources.brokers:
            by_name.setdefault(row.ref.name, []).append(row)
        nodes += (_broker(name, rows) for name, rows in by_name.items())
        nodes += (self._producer(name) for name in self.producers)
        nodes += (self._topic(name) for name in {*self.topics, *self._subscribed_topics()})
        nodes += (self._group(name) for name in {*self.groups, *self.members})
        return nodes

    def edges(self) -> Iterable[Edge]:
        yield from self._registrations()
        yield from self._connections()
        yield from self._storage()
        yield from self._consumption()
        for row in self.sources.topics:
            if row.kind == "dlq":
                group = row.name.removeprefix(DLQ_PREFIX)
                yield Edge(
                    "dead_letters",
                    key_of("group", group),
                    key_of("topic", row.name),
                    count=self._dead_letters(group),
                    stale=self._lost(row.brokers),
                )

    def _registrations(self) -> Iterable[Edge]:
        down = {row.ref.name for row in self.sources.brokers if row.down}
        for one in self.sources.name_servers:
            for broker in one.brokers or ():
                yield Edge(
                    "registration",
                    key_of("namesrv", one.addr),
                    key_of("broker", broker),
                    down=one.down or broker in down,
                    stale=one.down,
                )

    def _connections(self) -> Iterable[Edge]:
        for group, by_broker in self.producers.items():
            for broker, clients in by_broker.items():
                yield Edge(
                    "connection",
                    key_of("producer", group),
                    key_of("broker", broker),
                    clients=len(clients),
                    stale=broker in self.sources.lost,
                )

    def _storage(self) -> Iterable[Edge]:
        for row in self.sources.topics:
            rates = self.sources.of_topics.put_rates.get(row.name, {})
            for broker in row.brokers:
                is_lost = broker in self.sources.lost
                yield Edge(
                    "storage",
                    key_of("broker", broker),
                    key_of("topic", row.name),
                    rate=None if is_lost else rates.get(broker),
                    down=is_lost,
                    stale=is_lost,
                )

    def _consumption(self) -> Iterable[Edge]:
        for group in {*self.lags, *self.subscribed}:
            lags = self.lags.get(group, {})
            metrics = self.metrics.get(group)
            has_lag = metrics is None or not metrics.broadcasting
            for topic in {*lags, *self.subscribed.get(group, ())}:
                lag = lags.get(topic) if has_lag else None
                row = self.topics.get(topic)
                stale = row is not None and self._lost(row.brokers)
                yield Edge(
                    "consumption",
                    key_of("topic", topic),
                    key_of("group", group),
                    rate=None if stale else self._consume_rate(row, group),
                    lag=lag,
                    behind=bool(lag) and self.behind.get(group, False),
                    down=row is None and self._missing() == "missing",
                    stale=stale,
                )

    def _consume_rate(self, row: TopicRow | None, group: str) -> float | None:
        """The rate of a group in a topic; None when a broker of the topic reports no such rates."""
        if row is None:
            return None
        total = 0.0
        for broker in row.brokers:
            by_group = self.sources.of_groups.rates.get(broker)
            if by_group is None:
                return None
            total += by_group.get(group, {}).get(row.name, 0.0)
        return total

    @staticmethod
    def _name_server(one: Registered) -> Node:
        return Node("namesrv", one.addr, "down" if one.down else "up", stale=one.down)

    def _producer(self, name: str) -> Node:
        by_broker = self.producers[name]
        clients = {client for found in by_broker.values() for client in found}
        return Node(
            "producer",
            name,
            system=name.startswith(INNER_PRODUCER_PREFIXES) or is_system_group(name),
            clients=len(clients),
            stale=self._lost(by_broker),
        )

    def _subscribed_topics(self) -> set[str]:
        return {topic for topics in self.subscribed.values() for topic in topics}

    def _topic(self, name: str) -> Node:
        row = self.topics.get(name)
        if row is None:
            kind = topic_kind(name, (), frozenset())
            return Node(
                "topic",
                name,
                self._missing(),
                system=kind == "system",
                topic_kind=kind,
                has_page=False,
            )
        rates = self.sources.of_topics.put_rates.get(name, {})
        is_stale = self._lost(row.brokers)
        now = [rate for broker, rate in rates.items() if broker not in self.sources.lost]
        return Node(
            "topic",
            name,
            system=row.kind == "system",
            topic_kind=row.kind,
            in_rate=sum_known(now),
            out_rate=None if is_stale else self.sources.of_topics.out_rates.get(name),
            lag=self.lag_of_topic.get(name),
            stale=is_stale,
        )

    def _group(self, name: str) -> Node:
        row, metrics = self.groups.get(name), self.metrics.get(name)
        is_stale = row is not None and self._lost(row.brokers)
        clients = metrics.clients if metrics is not None else None
        if clients is None and not self.sources.clients.left_out:
            clients = len(self.members.get(name, ()))
        state: State = "unknown" if clients is None else "up" if clients else "offline"
        return Node(
            "group",
            name,
            self._missing() if row is None else state,
            system=row.system if row is not None else is_system_group(name),
            out_rate=metrics.rate if metrics is not None and not is_stale else None,
            lag=metrics.lag if metrics is not None and not metrics.broadcasting else None,
            behind=self.behind.get(name, False),
            dead_letters=self._dead_letters(name),
            clients=clients,
            stale=is_stale,
            has_page=row is not None,
        )

    def _missing(self) -> State:
        """State of an object that no answering broker has."""
        sources = self.sources
        is_certain = sources.current and sources.complete and not sources.lost
        return "missing" if is_certain else "unknown"

    def _dead_letters(self, group: str) -> int | None:
        letters = self.sources.dead_letters
        return None if letters is None else letters.get(group, 0)

    def _lost(self, brokers: Iterable[str]) -> bool:
        return not self.sources.lost.isdisjoint(brokers)


def _broker(name: str, rows: list[BrokerRow]) -> Node:
    """Merge the processes of a broker name; the rates are the master's."""
    master = next((row for row in rows if row.ref.is_master and not row.down), None)
    down = sum(row.down for row in rows)
    state: State = "up"
    if down == len(rows):
        state = "down"
    elif down or any(row.state == "unregistered" for row in rows):
        state = "partly"
    return Node(
        "broker",
        name,
        state,
        in_rate=master.in_rate if master is not None else None,
        out_rate=master.out_rate if master is not None else None,
        stale=state == "down",
    )
