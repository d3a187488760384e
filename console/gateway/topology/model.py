"""Nodes and edges of the topology. None means unknown; rates are averages of a minute, msg/s.

    name server --registration-> broker <-connection-- producer group
    broker --storage-> topic --consumption-> consumer group --dead letters-> its DLQ topic

Heartbeats of producers carry no topics: an edge from a producer group ends at the brokers.

Nodes and edges are msgspec structs without garbage collection: a cluster with 5,000 topics and
groups has 27,000 of them, which as dataclasses take four times as long to make.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from console.gateway.topics.listing import Kind as TopicKind

NodeKind = Literal["namesrv", "broker", "producer", "topic", "group"]
#: partly: a process of the broker is down, or the name server does not list a process. offline: no
#: client is connected. missing: no broker has the topic or group that a client names.
State = Literal["up", "partly", "down", "offline", "missing", "unknown"]
EdgeKind = Literal["registration", "connection", "storage", "consumption", "dead_letters"]

#: Kinds of nodes in the order of lists and drawings.
NODE_KINDS: tuple[NodeKind, ...] = ("namesrv", "broker", "producer", "topic", "group")


class Node(Struct, frozen=True, gc=False):
    """An object of the cluster. `key` is unique; values that a kind lacks are None.

    `in_rate`: messages produced to a broker or topic; `out_rate`: messages consumed from a broker
    or topic, or by a group. `lag` counts messages: of a topic, the highest lag of its groups.
    `stale`: a broker of the object does not answer, values are the last known ones.
    """

    kind: NodeKind
    name: str
    state: State = "up"
    system: bool = False
    topic_kind: TopicKind | None = None
    in_rate: float | None = None
    out_rate: float | None = None
    lag: int | None = None
    behind: bool = False
    dead_letters: int | None = None
    clients: int | None = None
    stale: bool = False
    #: False for a topic or group that clients name and no answering broker has.
    has_page: bool = True
    #: Number of objects that this node stands for; 1 for an object.
    count: int = 1

    @property
    def key(self) -> str:
        return key_of(self.kind, self.name)

    @property
    def is_retry(self) -> bool:
        """True for a retry topic or DLQ topic of a group."""
        return self.topic_kind in {"retry", "dlq"}

    @property
    def is_stack(self) -> bool:
        """True for a node that stands for all objects of its kind."""
        return self.name == STACK and self.count > 1

    @property
    def troubled(self) -> bool:
        """True for an object that needs attention: down, behind, or clients name it in vain."""
        return self.behind or self.state in {"partly", "down", "missing"}


class Edge(Struct, frozen=True, gc=False):
    """A connection from `source` to `target`, keys of nodes.

    `rate`: messages from a broker's producers to the topic, or from the topic to the group; `lag`
    of the group in the topic, messages; `clients`: connected producers. Values that a kind lacks
    are None. `count` of dead letters: messages in the DLQ topic.
    """

    kind: EdgeKind
    source: str
    target: str
    rate: float | None = None
    lag: int | None = None
    clients: int | None = None
    count: int | None = None
    behind: bool = False
    down: bool = False
    stale: bool = False
    #: False for an edge in place of parallel edges of stacks.
    is_single: bool = True

    @property
    def key(self) -> str:
        return f"{self.source} → {self.target}"

    @property
    def ends(self) -> tuple[str, str]:
        return self.source, self.target


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Topology:
    """All nodes and edges of a cluster, in order of kind and name.

    `unmeasured` topics and groups were not asked for metrics: their brokers answer for one topic or
    group per request. `clients_left_out` groups were not asked for clients. Without `complete`,
    no broker answers and none has answered before: topics and groups are unknown. `measured_ms` is
    the time of the oldest rates and lags; None without any.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    #: Brokers by topic name, for requests about single topics.
    brokers_of: Mapping[str, tuple[str, ...]]
    unmeasured: int = 0
    clients_left_out: int = 0
    complete: bool = True
    measured_ms: int | None = None


#: Name of a node that stands for all objects of its kind; no legal name of an object.
STACK = "*"


def key_of(kind: NodeKind, name: str) -> str:
    return f"{kind}:{name}"


def name_of(key: str) -> str:
    return key.partition(":")[2]
