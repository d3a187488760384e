"""Handmade stored messages, for tests without a store."""

from core_broker.message.model import MessageExt


def stored(queue_id: int, offset: int, store_timestamp: int) -> MessageExt:
    """A message without body or properties; queue and offset determine the position."""
    return MessageExt(
        topic="T",
        body=b"",
        properties={},
        queue_id=queue_id,
        queue_offset=offset,
        offset_physical=1000 * queue_id + offset,
        store_size=100,
        flag=0,
        sys_flag=0,
        born_timestamp=store_timestamp,
        born_host=("127.0.0.1", 1),
        store_timestamp=store_timestamp,
        store_host=("127.0.0.1", 10911),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_crc=0,
    )
