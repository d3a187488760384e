"""Properties of the codecs: decoders accept or refuse any bytes, encoders preserve all values."""

from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.errors import ClientError, ProtocolError
from core_broker.message import sysflag
from core_broker.message.batch import BatchedMessage, decode_batch, encode_batch
from core_broker.message.compression import compress, decompress
from core_broker.message.ids import parse_offset_msg_id, parse_uniq_key
from core_broker.message.model import Message, MessageInner
from core_broker.message.properties import decode_properties, encode_properties
from core_broker.message.record import decode_record, decode_records, encode_record, host_flags
from core_broker.message.record_layout import record_size
from core_broker.remoting import bodies, fastjson, headers
from core_broker.remoting.bodies import decode_body, decode_register_body, encode_body
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from tests.wire.strategies import INT64, PROPERTY, TEXT, commands, messages

BODIES = [
    kind
    for name in bodies.__all__
    if isinstance(kind := getattr(bodies, name), type) and hasattr(kind, "__struct_fields__")
]
HEADERS = [getattr(headers, name) for name in headers.__all__]
COMPRESSIONS = [
    sysflag.COMPRESSION_ZLIB,
    sysflag.COMPRESSION_LZ4,
    sysflag.COMPRESSION_ZSTD,
    0,
]

JSON_LIKE = st.text("{}[]\",:'\\ \nabtrufalsenl0123456789.eE+-_xu", max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


@given(st.binary(max_size=200))
def test_splitter_survives_any_bytes(data: bytes) -> None:
    splitter = FrameSplitter()
    splitter.feed(data)
    if splitter.fault is None:
        assert splitter.pending_bytes <= len(data)
    else:
        with pytest.raises(ProtocolError):
            splitter.feed(b"")


@given(st.sampled_from([0, 1, 2, 255]), st.binary(max_size=120) | JSON_LIKE.map(str.encode))
def test_header_survives_any_bytes(serialize_type: int, header: bytes) -> None:
    frame = pack(">II", 4 + len(header), serialize_type << 24 | len(header)) + header
    with suppress(ProtocolError):
        command = RemotingCommand.decode(frame)
        for kind in HEADERS:
            with suppress(ProtocolError):
                command.header(kind)
        with suppress(ProtocolError):
            assert isinstance(command.ext_fields, dict)


@given(JSON, st.sampled_from(HEADERS))
def test_typed_headers_survive_any_ext_fields(value: object, kind: type[headers.Header]) -> None:
    header = b'{"code":1,"extFields":' + fastjson.dumps(value) + b"}"
    frame = pack(">II", 4 + len(header), len(header)) + header
    with suppress(ProtocolError):
        RemotingCommand.decode(frame).header(kind)


@given(JSON_LIKE | TEXT)
def test_lenient_json_survives_any_text(text: str) -> None:
    with suppress(ProtocolError):
        fastjson.loads(text)


@given(st.binary(max_size=100))
def test_lenient_json_survives_any_bytes(data: bytes) -> None:
    with suppress(ProtocolError):
        fastjson.loads(data)


@given(JSON)
def test_lenient_json_reads_what_it_writes(value: object) -> None:
    assert fastjson.loads(fastjson.dumps(value)) == without_nulls(value)


def without_nulls(value: object) -> object:
    """Members with the value null are read as absent."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: kind.__name__)
@given(data=st.binary(max_size=60) | JSON_LIKE.map(str.encode) | JSON.map(fastjson.dumps))
def test_bodies_survive_any_bytes(kind: type, data: bytes) -> None:
    with suppress(ProtocolError):
        encode_body(decode_body(kind, data))


@given(st.binary(max_size=100), st.booleans())
def test_registrations_survive_any_bytes(data: bytes, compressed: bool) -> None:
    with suppress(ProtocolError):
        decode_register_body(data, compressed=compressed)


@given(st.binary(max_size=300))
def test_records_survive_any_bytes(data: bytes) -> None:
    with suppress(ProtocolError):
        decode_records(data)


@given(messages(), st.data())
def test_records_survive_any_change(message: MessageInner, data: st.DataObject) -> None:
    record = bytearray(encode_record(message, queue_offset=1, physical_offset=2, store_timestamp=3))
    record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ProtocolError):
        decode_records(bytes(record))


@given(st.binary(max_size=200))
def test_batches_survive_any_bytes(data: bytes) -> None:
    with suppress(ProtocolError):
        decode_batch(data)


@given(st.binary(max_size=200), st.integers(0, 0x7FF))
def test_compressed_bodies_survive_any_bytes(data: bytes, sys_flag: int) -> None:
    with suppress(ProtocolError):
        assert len(decompress(data, sys_flag, 1000)) <= 1000


@given(st.text(max_size=60) | st.text("0123456789ABCDEF", min_size=32, max_size=56))
def test_ids_survive_any_text(text: str) -> None:
    with suppress(ClientError):
        parse_offset_msg_id(text)
    with suppress(ClientError):
        parse_uniq_key(text, 1_758_274_540_000)


@given(st.binary(max_size=100))
def test_properties_survive_any_bytes(data: bytes) -> None:
    for name, value in decode_properties(data).items():
        assert name
        assert value


@given(st.lists(commands(), max_size=4), st.data())
def test_commands_come_back(sent: list[RemotingCommand], data: st.DataObject) -> None:
    stream = b"".join(command.encode() for command in sent)
    cut = data.draw(st.integers(0, len(stream)))
    splitter = FrameSplitter()
    received = splitter.feed(stream[:cut]) + splitter.feed(stream[cut:])
    assert [shape(command) for command in received] == [shape(command) for command in sent]


def shape(command: RemotingCommand) -> tuple[object, ...]:
    skipped = {"_fields", "_raw_fields", "held"}
    names = [name for name in RemotingCommand.__slots__ if name not in skipped]
    return (command.ext_fields, *(getattr(command, name) for name in names))


@given(messages(), INT64, INT64, INT64)
def test_messages_come_back(
    message: MessageInner, queue_offset: int, physical_offset: int, store_timestamp: int
) -> None:
    record = encode_record(
        message,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        store_timestamp=store_timestamp,
    )
    stored = decode_record(record, check_crc=True)

    for name in ("topic", "queue_id", "body", "properties", "flag", "born_timestamp"):
        assert getattr(stored, name) == getattr(message, name), name
    for name in ("born_host", "store_host", "reconsume_times", "prepared_transaction_offset"):
        assert getattr(stored, name) == getattr(message, name), name
    assert stored.sys_flag == host_flags(message)
    assert stored.queue_offset == queue_offset
    assert stored.offset_physical == physical_offset
    assert stored.store_timestamp == store_timestamp
    assert stored.store_size == len(record)
    properties = encode_properties(message.properties)
    topic = message.topic.encode()
    assert len(record) == record_size(
        len(message.body), len(topic), len(properties), stored.sys_flag
    )
    ip, port, offset = parse_offset_msg_id(stored.offset_msg_id)
    assert (ip, port, offset) == (*message.store_host, physical_offset)


@given(st.lists(messages(), max_size=4))
def test_records_one_after_another_come_back(sent: list[MessageInner]) -> None:
    records = [
        encode_record(message, queue_offset=at, physical_offset=at, store_timestamp=at)
        for at, message in enumerate(sent)
    ]
    stored = decode_records(b"".join(records))
    assert [message.body for message in stored] == [message.body for message in sent]
    assert [message.queue_offset for message in stored] == list(range(len(sent)))


@given(st.lists(st.tuples(st.binary(max_size=50), st.dictionaries(PROPERTY, PROPERTY)), max_size=5))
def test_batches_come_back(sent: list[tuple[bytes, dict[str, str]]]) -> None:
    batch = [Message("T", body, properties=properties) for body, properties in sent]
    assert decode_batch(encode_batch(batch)) == [
        BatchedMessage(message.body, message.properties, message.flag) for message in batch
    ]


@given(st.binary(max_size=2000), st.sampled_from(COMPRESSIONS))
def test_compressed_bodies_come_back(body: bytes, kind: int) -> None:
    assert decompress(compress(body, kind), kind | sysflag.COMPRESSED, len(body)) == body


@given(st.integers(-(2**31), 2**31 - 1), st.booleans(), TEXT)
def test_typed_headers_come_back(number: int, flag: bool, text: str) -> None:
    header = headers.SendMessageRequestHeaderV2(
        producer_group=text,
        topic=text,
        default_topic=text,
        default_topic_queue_nums=number,
        queue_id=number,
        sys_flag=number,
        born_timestamp=number << 32,
        flag=number,
        properties=text,
        batch=flag,
        unit_mode=not flag,
    )
    frame = RemotingCommand.request(310, header).encode()
    assert RemotingCommand.decode(frame).header(headers.SendMessageRequestHeaderV2) == header


QUEUES = st.builds(bodies.MessageQueue, TEXT, TEXT, st.integers(0, 100))
OFFSETS = st.builds(
    bodies.OffsetWrapper, broker_offset=INT64, consumer_offset=INT64, last_timestamp=INT64
)


@given(st.dictionaries(QUEUES, OFFSETS, max_size=4), st.sampled_from(bodies.Dialect))
def test_tables_by_queue_come_back(
    table: dict[bodies.MessageQueue, bodies.OffsetWrapper], dialect: bodies.Dialect
) -> None:
    stats = bodies.ConsumeStats(offset_table=table, consume_tps=0.5)
    assert decode_body(bodies.ConsumeStats, encode_body(stats, dialect)) == stats


@given(
    st.dictionaries(TEXT, st.dictionaries(st.integers(0, 20), INT64, max_size=3), max_size=3),
    st.sampled_from(bodies.Dialect),
)
def test_tables_by_number_come_back(
    table: dict[str, dict[int, int]], dialect: bodies.Dialect
) -> None:
    offsets = bodies.ConsumerOffsetSerializeWrapper(offset_table=table)
    encoded = encode_body(offsets, dialect)
    assert decode_body(bodies.ConsumerOffsetSerializeWrapper, encoded) == offsets


@given(
    st.dictionaries(
        st.text("abc%_-", min_size=1), st.tuples(*[st.integers(0, 100)] * 3), max_size=3
    ),
    st.booleans(),
)
def test_registrations_come_back(topics: dict[str, tuple[int, int, int]], compressed: bool) -> None:
    table = {
        name: bodies.TopicConfig(
            topic_name=name, read_queue_nums=read, write_queue_nums=write, perm=perm
        )
        for name, (read, write, perm) in topics.items()
    }
    body = bodies.RegisterBrokerBody(
        topic_config_serialize_wrapper=bodies.TopicConfigSerializeWrapper(
            topic_config_table=table, data_version=bodies.DataVersion(5, 6)
        ),
        filter_server_list=["10.0.0.1:1"],
    )
    data = bodies.encode_register_body(body, compressed=compressed)
    assert decode_register_body(data, compressed=compressed) == body
