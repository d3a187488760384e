"""An order as Protobuf and Avro, for tests of body schemas."""

import json
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from core_broker.message.model import MessageExt

ORDER_AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop.v1",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
            {"name": "amounts", "type": {"type": "map", "values": "double"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
            },
            {"name": "raw", "type": "bytes"},
        ],
    }
).encode()


def order_set(imported: str = "") -> bytes:
    """A descriptor set with the types shop.v1.Order and shop.v1.Refund."""
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="shop.proto", package="shop.v1", syntax="proto3")
    if imported:
        file.dependency.append(imported)
    kinds = descriptor_pb2.FieldDescriptorProto
    state = file.enum_type.add(name="State")
    for number, name in enumerate(("OPEN", "PAID")):
        state.value.add(name=name, number=number)
    order = file.message_type.add(name="Order")
    tag = order.nested_type.add(name="TagsEntry")
    tag.options.map_entry = True
    tag.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=1)
    tag.field.add(name="value", number=2, type=kinds.TYPE_BOOL, label=1)
    own: list[tuple[str, int, int, str]] = [
        ("id", 1, kinds.TYPE_INT64, ""),
        ("customer", 2, kinds.TYPE_STRING, ""),
        ("total", 3, kinds.TYPE_DOUBLE, ""),
        ("state", 4, kinds.TYPE_ENUM, ".shop.v1.State"),
        ("parent", 5, kinds.TYPE_MESSAGE, ".shop.v1.Order"),
    ]
    for name, number, kind, type_name in own:
        order.field.add(name=name, number=number, type=kind, type_name=type_name or None, label=1)
    many = (("items", 6, ".shop.v1.Order"), ("tags", 7, ".shop.v1.Order.TagsEntry"))
    for name, number, type_name in many:
        order.field.add(
            name=name, number=number, type=kinds.TYPE_MESSAGE, type_name=type_name, label=3
        )
    refund = file.message_type.add(name="Refund")
    refund.field.add(name="reason", number=1, type=kinds.TYPE_STRING, label=1)
    return files.SerializeToString()


def order_bytes(**fields: Any) -> bytes:
    """An order, written by the library."""
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(order_set())
    pool.AddSerializedFile(files.file[0].SerializeToString())
    order = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.v1.Order"))
    written: bytes = order(**fields).SerializeToString(deterministic=True)
    return written


def message_of(body: bytes, topic: str, properties: dict[str, str] | None = None) -> MessageExt:
    return MessageExt(
        topic=topic,
        body=body,
        properties=properties or {},
        queue_id=0,
        queue_offset=0,
        offset_physical=0,
        store_size=len(body),
        flag=0,
        sys_flag=0,
        born_timestamp=0,
        born_host=("127.0.0.1", 1),
        store_timestamp=0,
        store_host=("127.0.0.1", 2),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_crc=0,
    )
