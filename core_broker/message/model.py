"""The forms of a message: of the producer, of the broker before storing, and stored.

    Message       sent by a producer: topic, body, properties
    MessageInner  appended by a broker: also queue, times and hosts
    MessageExt    stored, and received by consumers: also offsets

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
    """A message to send. Tags, keys and delay level are stored as properties."""

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
        """Set a property of the application.

        Raises ClientError for a reserved name, and for a blank name or value, since RocketMQ drops
        such properties.
        """
        if not name.strip() or not value.strip():
            raise ClientError("The name or value of a property is blank.")
        if name in RESERVED_PROPERTIES:
            raise ClientError(f"The property {name} is used by the system; choose another name.")
        self.properties[name] = value

    @property
    def tags(self) -> str | None:
        """The tag for consumers' filters."""
        return self.properties.get(PROPERTY_TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys for queries by key."""
        return split_keys(self.properties.get(PROPERTY_KEYS))

    @property
    def msg_id(self) -> str | None:
        """The unique key, if set; sending sets a key on a copy of the message."""
        return self.properties.get(PROPERTY_UNIQ_KEY)

    def __repr__(self) -> str:
        return f"Message(topic={self.topic!r}, body={len(self.body)} bytes, {self.properties})"


@dataclass(slots=True)
class MessageInner:
    """A message to append to the log. The order of `properties` is the order on disk."""

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
        """The tag for consumers' filters."""
        return self.properties.get(PROPERTY_TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys for queries by key."""
        return split_keys(self.properties.get(PROPERTY_KEYS))


@dataclass(slots=True)
class MessageExt:
    """A stored message. `body` has the stored bytes, which may be compressed."""

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
    #: Name of the broker, set by the receiving client.
    broker_name: str | None = None

    @property
    def msg_id(self) -> str:
        """The unique key of the sending client, or the offset id without a unique key."""
        return self.properties.get(PROPERTY_UNIQ_KEY) or self.offset_msg_id

    @property
    def offset_msg_id(self) -> str:
        """The id with address and physical offset of the storing broker."""
        return offset_msg_id(*self.store_host, self.offset_physical)

    @property
    def tags(self) -> str | None:
        """The tag for consumers' filters."""
        return self.properties.get(PROPERTY_TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys for queries by key."""
        return split_keys(self.properties.get(PROPERTY_KEYS))

    def decompressed_body(self) -> bytes:
        """The decompressed body; raises ProtocolError for malformed data."""
        if not self.sys_flag & sysflag.COMPRESSED:
            return self.body
        return decompress(self.body, self.sys_flag)
