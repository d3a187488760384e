"""Answers to Gantry's own request codes 60000 to 60002: a whole broker in one answer.

RocketMQ has no such codes. A broker that answers them names them in its runtime information (28)
under `gantryRequestCodes`; who asks another broker must use RocketMQ's. The bodies are plain JSON,
times are milliseconds since the epoch, rates are messages a second over the last minute. A member
that is absent is not known. Members may be added; none will change its meaning.
"""

from msgspec import Struct

#: The key in the runtime information, and what stands between the codes there.
GANTRY_CODES_KEY = "gantryRequestCodes"
CODES_SEPARATOR = ","


class TopicEntry(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """One topic on one broker.

    `queues` has the first and the next offset of each queue by its id; `groups` is by name how many
    messages each group that reads the topic has before it.
    """

    queues: list[tuple[int, int]] = []
    last_write_timestamp: int | None = None
    put_tps: float | None = None
    get_tps: float | None = None
    groups: dict[str, int] = {}


class TopicInventoryBody(Struct, rename="camel", kw_only=True):
    """Answer to GET_TOPIC_INVENTORY (60000): all topics as they were at `taken_timestamp`."""

    taken_timestamp: int
    topics: dict[str, TopicEntry] = {}


class GroupEntry(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """One group on one broker. `topics` is by topic how many messages the group has before it, its
    retry topic among them; empty while it has read nothing. `oldest_pending_timestamp` is when the
    oldest of these messages was stored. `message_model` is there while clients are connected; who
    broadcasts keeps its offsets itself, so that nobody else knows how far it is."""

    topics: dict[str, int] = {}
    oldest_pending_timestamp: int | None = None
    consume_tps: float | None = None
    clients: int = 0
    message_model: str | None = None
    dead_letters: int = 0


class GroupInventoryBody(Struct, rename="camel", kw_only=True):
    """Answer to GET_GROUP_INVENTORY (60001): all groups as they were at `taken_timestamp`."""

    taken_timestamp: int
    groups: dict[str, GroupEntry] = {}


class ClientEntry(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """One connection. `consumer_groups` is by group the topics that it subscribes to."""

    client_id: str
    client_addr: str
    protocol: str
    language: str
    version: int
    last_heartbeat_timestamp: int
    consumer_groups: dict[str, list[str]] = {}
    producer_groups: list[str] = []


class ClientInventoryBody(Struct, rename="camel", kw_only=True):
    """Answer to GET_ALL_CLIENTS (60002): who is connected now."""

    taken_timestamp: int
    clients: list[ClientEntry] = []
