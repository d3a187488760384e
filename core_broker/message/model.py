"""A message on its way: as the application makes it, into the store, and out of it again.

    Message       what a producer sends: topic, body, properties
    MessageInner  what a broker appends: also queue, times and hosts
    MessageExt    what was stored: also its offsets; this is what consumers receive

Compatible with RocketMQ's Message, MessageExtBrokerInner and MessageExt.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from core_broker.errors import ClientError
from core_broker.message import sysflag
from core_broker.message.compression import decompress
from core_broker.message.ids import offset_msg_id
from core_broker.message.properties import (
    KEY_SEPARATOR,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_KEY,
    PROPERTY_WAIT_STORE_MSG_OK,
    RESERVED_PROPERTIES,
    split_keys,
)

#: An address as (ip, port).
Host = tuple[str, int]

NO_HOST: Host = ("0.0.0.0", 0)  # noqa: S104 - the absence of an address, nothing listens on it


class Message:
    """A message to send. Tags, keys and delay are properties with names of their own."""

    __slots__ = ("body", "flag", "properties", "topic")

    def __init__(
        self,
        topic: str,
        body: bytes,
        *,
        tags: str | None = None,
        keys: str | Iterable[str] = (),
        flag: int = 0,
        delay_level: int = 0,
        properties: Mapping[str, str] | None = None,
        wait_store_ok: bool = True,
    ) -> None:
        self.topic = topic
        self.body = body
        self.flag = flag
        self.properties = dict(properties or {})
        key_text = keys if isinstance(keys, str) else KEY_SEPARATOR.join(keys)
        if key_text:
            self.properties[PROPERTY_KEYS] = key_text
        if tags:
            self.properties[PROPERTY_TAGS] = tags
        if delay_level > 0:
            self.properties[PROPERTY_DELAY_TIME_LEVEL] = str(delay_level)
        self.properties[PROPERTY_WAIT_STORE_MSG_OK] = "true" if wait_store_ok else "false"

    def put_user_property(self, name: str, value: str) -> None:
        """Set a property of the application's own. Raises ClientError when the name is one of
        RocketMQ's, or when it or the value is blank, for such a property would be lost."""
        if not name.strip() or not value.strip():
            raise ClientError("The name or value of a property is blank.")
        if name in RESERVED_PROPERTIES:
            raise ClientError(f"The property {name} is used by the system; choose another name.")
        self.properties[name] = value

    @property
    def tags(self) -> str | None:
        """The tag that consumers filter by."""
        return self.properties.get(PROPERTY_TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys under which the message can be found."""
        return split_keys(self.properties.get(PROPERTY_KEYS))

    @property
    def msg_id(self) -> str | None:
        """The unique key, when the message has one already; sending gives one to a copy."""
        return self.properties.get(PROPERTY_UNIQ_KEY)

    def __repr__(self) -> str:
        return f"Message(topic={self.topic!r}, body={len(self.body)} bytes, {self.properties})"


@dataclass(slots=True)
class MessageInner:
    """A message on its way into the log. The order of `properties` is the order on disk."""

    topic: str
    queue_id: int
    body: bytes
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: Host = NO_HOST
    store_host: Host = NO_HOST
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0

    @property
    def tags(self) -> str | None:
        """The tag that consumers filter by."""
        return self.properties.get(PROPERTY_TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys under which the message can be found."""
        return split_keys(self.properties.get(PROPERTY_KEYS))


@dataclass(slots=True)
class MessageExt:
    """A stored message. `body` is as stored, so it may be compressed."""

    topic: str
    body: bytes
    properties: dict[str, str]
    queue_id: int
    queue_offset: int
    offset_physical: int
    store_size: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: Host
    store_timestamp: int
    store_host: Host
    reconsume_times: int
    prepared_transaction_offset: int
    body_crc: int
    #: Name of the broker that it was read from, set by the client.
    broker_name: str | None = None

    @property
    def msg_id(self) -> str:
        """The unique key of the client that made it, or the offset id when it gave none."""
        return self.properties.get(PROPERTY_UNIQ_KEY) or self.offset_msg_id

    @property
    def offset_msg_id(self) -> str:
        """The id that tells which broker stored it, and where."""
        return offset_msg_id(*self.store_host, self.offset_physical)

    @property
    def tags(self) -> str | None:
        """The tag that consumers filter by."""
        return self.properties.get(PROPERTY_TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys under which the message can be found."""
        return split_keys(self.properties.get(PROPERTY_KEYS))

    def decompressed_body(self) -> bytes:
        """The body as the application sent it; raises ProtocolError when it does not unpack."""
        if not self.sys_flag & sysflag.COMPRESSED:
            return self.body
        return decompress(self.body, self.sys_flag)
