"""Answers to Gantry's private codes 60000 to 60002, the inventory of a broker, and to 60006.

RocketMQ has no equivalent. A Gantry broker lists its private codes in the runtime information (28)
under `gantryRequestCodes`; clients must send only listed codes, and use RocketMQ's codes otherwise.
Bodies are standard JSON. Times are milliseconds since the epoch, rates are messages per second over
the last minute. An absent member is unknown. Future versions may add members, but will not change
the meaning of members.
"""

from msgspec import Struct

#: Key of the list of private codes in the runtime information.
GANTRY_CODES_KEY = "gantryRequestCodes"
#: Key of the list of keys whose values are constants, not measured: Apache's exporter fails without
#: the keys.
GANTRY_UNMEASURED_KEY = "gantryUnmeasured"
#: Key of the time from which the totals of today count, milliseconds since the epoch: the last
#: midnight in the broker's time zone, or the broker's start if that was later.
GANTRY_TODAY_KEY = "gantryTodayFrom"
#: Key of tls.server.mode in the runtime information.
GANTRY_TLS_MODE_KEY = "gantryTlsMode"
#: Key of the end of validity of the broker's TLS certificate, milliseconds since the epoch; absent
#: without a certificate in files.
GANTRY_TLS_EXPIRY_KEY = "gantryTlsExpiryTimestamp"
#: Key of the reason why the store refuses messages; absent while the store accepts them.
GANTRY_REFUSAL_KEY = "gantryReadOnlyReason"
#: Separator in the lists of codes and of keys.
CODES_SEPARATOR = ","


class TopicEntry(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """A topic on a broker.

    `queues` has the minimum and maximum offset of each queue, by queue id. `groups` has the lag of
    each consuming group in messages, by group name.
    """

    queues: list[tuple[int, int]] = []
    last_write_timestamp: int | None = None
    put_tps: float | None = None
    get_tps: float | None = None
    groups: dict[str, int] = {}


class TopicInventoryBody(Struct, rename="camel", kw_only=True):
    """Answer to GET_TOPIC_INVENTORY (60000): all topics at `taken_timestamp`."""

    taken_timestamp: int
    topics: dict[str, TopicEntry] = {}


class GroupEntry(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """A group on a broker.

    `topics` has the group's lag in messages, by topic, including the retry topic; empty before the
    first committed offset. `oldest_pending_timestamp` is the store time of the oldest unconsumed
    message. `consume_tps` is the sum of `topic_tps`, which has the rate of each topic whose rate is
    not 0. `message_model` is absent while no client is connected. Broadcasting consumers keep
    offsets on the client, so the lag of a broadcasting group is unknown.
    """

    topics: dict[str, int] = {}
    oldest_pending_timestamp: int | None = None
    consume_tps: float | None = None
    topic_tps: dict[str, float] | None = None
    clients: int = 0
    message_model: str | None = None
    dead_letters: int = 0


class GroupInventoryBody(Struct, rename="camel", kw_only=True):
    """Answer to GET_GROUP_INVENTORY (60001): all groups at `taken_timestamp`."""

    taken_timestamp: int
    groups: dict[str, GroupEntry] = {}


class ClientEntry(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """A client connection. `consumer_groups` has the subscribed topics, by group.

    `account` is the user or access key that signed the heartbeat.
    """

    client_id: str
    client_addr: str
    protocol: str
    language: str
    version: int
    last_heartbeat_timestamp: int
    consumer_groups: dict[str, list[str]] = {}
    producer_groups: list[str] = []
    account: str | None = None


class ClientInventoryBody(Struct, rename="camel", kw_only=True):
    """Answer to GET_ALL_CLIENTS (60002): all connected clients."""

    taken_timestamp: int
    clients: list[ClientEntry] = []


class KickedClientBody(Struct, rename="camel", kw_only=True):
    """Answer to KICK_CLIENT (60006): addresses of the closed connections, count of those left."""

    addrs: list[str]
    left: int = 0
