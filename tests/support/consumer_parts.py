"""Stand-ins for the parts of a consumer, and stored messages for consuming."""

from collections.abc import Iterable

from core_broker.client.consumer.offset_stores import CachedOffsets
from core_broker.message.model import MessageExt, MessageInner
from core_broker.message.record import decode_record, encode_record
from core_broker.remoting.bodies import MessageQueue

QUEUE = MessageQueue("T", "b", 0)


def record(
    offset: int,
    body: bytes = b"hi",
    *,
    topic: str = "T",
    sys_flag: int = 0,
    properties: dict[str, str] | None = None,
) -> bytes:
    """A stored record at an offset of queue 0."""
    inner = MessageInner(
        topic=topic,
        queue_id=0,
        body=body,
        properties={"UNIQ_KEY": f"{offset:032X}", **(properties or {})},
        sys_flag=sys_flag,
        born_timestamp=1000,
        born_host=("127.0.0.1", 1),
        store_host=("127.0.0.1", 10911),
    )
    return encode_record(
        inner, queue_offset=offset, physical_offset=offset * 1000, store_timestamp=1001
    )


def message(
    offset: int, body: bytes = b"hi", properties: dict[str, str] | None = None
) -> MessageExt:
    stored = decode_record(record(offset, body, properties=properties))
    stored.broker_name = "b"
    return stored


class OffsetsInMemory(CachedOffsets):
    """An offset store in memory only."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[MessageQueue, int] = {}

    async def read(self, queue: MessageQueue) -> int | None:
        return self.stored.get(queue)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        self.stored[queue] = offset

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        for queue in queues:
            offset = self.cached(queue)
            if offset is not None:
                self.stored[queue] = offset


class RecordingSendBack:
    """Records the messages sent back; ``is_stored`` is the result of `send_back`."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.levels: list[int] = []
        self.is_stored = True

    async def send_back(self, failed: MessageExt, delay_level: int = 0) -> bool:
        self.offsets.append(failed.queue_offset)
        self.levels.append(delay_level)
        return self.is_stored
