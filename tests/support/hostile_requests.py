"""All attacks on the event loop of a broker or name server.

Beside the long bodies and headers: batches, long lists, requests about many queues, and pipelines.
"""

from collections.abc import Iterator
from functools import partial
from struct import pack

from core_broker.remoting.codes import RequestCode as Code
from tests.support.broker_requests import pull_header, send_header
from tests.support.hostile_bodies import (
    GROUP,
    LONG,
    TOPIC,
    WITH_BODY,
    Attack,
    frame,
    long_bodies_and_headers,
    to_json,
)
from tests.support.hostile_clients import client_registrations


def attacks() -> Iterator[Attack]:
    """All attacks, in a fixed order."""
    yield from long_bodies_and_headers()
    yield from _batches()
    yield from client_registrations()
    yield from _long_pull_filter()
    yield from _many_queues()
    yield from _large_counts()
    yield from _name_server_tables()
    yield from _pipelines()


def _batch(count: int, body: bytes = b"", properties: bytes = b"") -> bytes:
    size = 22 + len(body) + len(properties)
    one = pack(">IIIII", size, 0, 0, 0, len(body)) + body + pack(">H", len(properties)) + properties
    return frame(Code.SEND_BATCH_MESSAGE, send_header(TOPIC, batch=True), one * count)


def _batches_of(count: int) -> list[bytes]:
    return [_batch(count)]


def _batches() -> Iterator[Attack]:
    for count in (32_768, 700_000):
        yield Attack(f"320 {count} empty messages", "broker", partial(_batches_of, count))
    yield Attack(
        "320 3,000 keys each",
        "broker",
        lambda: [_batch(100, b"", b"KEYS\x01" + b" ".join(b"%d" % n for n in range(5_000)))],
    )
    yield Attack(
        "320 many properties",
        "broker",
        lambda: [_batch(150, b"", b"\x02".join(b"%x\x01" % n for n in range(5_000)))],
    )
    yield Attack(
        "310 many keys",
        "broker",
        lambda: (
            [
                frame(310, send_header(TOPIC, "KEYS\x01" + " ".join(str(n) for n in range(6_000)))),
            ]
            * 200
        ),
    )
    yield Attack(
        "310 long body", "broker", lambda: [frame(310, send_header(TOPIC), bytes(LONG))] * 3
    )


def _long_pull_filter() -> Iterator[Attack]:
    yield Attack(
        "11 long SQL filter",
        "broker",
        lambda: [
            frame(
                11,
                pull_header(
                    TOPIC, subscription="a > 1 AND " * 900_000 + "b < 2", expression_type="SQL92"
                ),
            )
        ],
    )


def _many_queues() -> Iterator[Attack]:
    yield Attack(
        "17 and 202 of 65,536 queues",
        "broker",
        lambda: [
            frame(
                Code.UPDATE_AND_CREATE_TOPIC,
                {
                    "topic": "HostileWide",
                    "defaultTopic": "TBW102",
                    "readQueueNums": "65536",
                    "writeQueueNums": "65536",
                    "perm": "6",
                    "topicFilterType": "SINGLE_TAG",
                },
            ),
            frame(Code.GET_TOPIC_STATS_INFO, {"topic": "HostileWide"}),
            frame(Code.GET_TOPIC_STATS_INFO, {"topic": "HostileWide"}),
        ],
    )
    yield Attack(
        "208 and 222 of 65,536 queues",
        "broker",
        lambda: [
            *[
                frame(
                    Code.UPDATE_CONSUMER_OFFSET,
                    {
                        "topic": "HostileWide",
                        "consumerGroup": GROUP,
                        "queueId": str(n),
                        "commitOffset": "0",
                    },
                )
                for n in (0, 65_535)
            ],
            frame(Code.GET_CONSUME_STATS, {"consumerGroup": GROUP, "topic": "HostileWide"}),
            frame(Code.GET_CONSUME_STATS, {"consumerGroup": GROUP}),
            frame(
                Code.INVOKE_BROKER_TO_RESET_OFFSET,
                {
                    "topic": "HostileWide",
                    "group": GROUP,
                    "timestamp": "0",
                    "isForce": "true",
                },
            ),
            frame(Code.QUERY_CONSUME_TIME_SPAN, {"topic": "HostileWide", "group": GROUP}),
            frame(Code.GET_TOPIC_INVENTORY),
            frame(Code.GET_GROUP_INVENTORY),
        ],
    )


def _large_counts() -> Iterator[Attack]:
    yield Attack(
        "12 and 321 with large counts",
        "broker",
        lambda: (
            [
                frame(
                    Code.QUERY_MESSAGE,
                    {
                        "topic": TOPIC,
                        "key": "1",
                        "maxNum": str(2**31 - 1),
                        "beginTimestamp": "0",
                        "endTimestamp": str(2**62),
                    },
                ),
                frame(
                    Code.QUERY_CONSUME_QUEUE,
                    {
                        "topic": TOPIC,
                        "queueId": "0",
                        "index": "0",
                        "count": str(2**31 - 1),
                        "consumerGroup": GROUP,
                    },
                ),
                frame(11, pull_header(TOPIC, max_msg_nums=2**31 - 1)),
            ]
            * 5
        ),
    )
    yield Attack(
        "300, 308 and 314",
        "broker",
        lambda: [
            frame(Code.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": TOPIC}),
            frame(
                Code.QUERY_CORRECTION_OFFSET,
                {
                    "topic": "HostileWide",
                    "compareGroup": GROUP,
                    "filterGroups": "a," * 2_000_000,
                },
            ),
            frame(
                Code.CLONE_GROUP_OFFSET,
                {
                    "srcGroup": GROUP,
                    "destGroup": GROUP + "2",
                    "topic": "",
                    "offline": "true",
                },
            ),
        ],
    )


def _name_server_tables() -> Iterator[Attack]:
    yield Attack("103 of 50,000 topics", "namesrv", lambda: [_registration(50_000)])
    yield Attack(
        "100 long value",
        "namesrv",
        lambda: [
            frame(Code.PUT_KV_CONFIG, {"namespace": "N", "key": "k", "value": "v" * (LONG - 100)})
        ],
    )
    yield Attack(
        "216 and 206 behind a registration",
        "namesrv",
        lambda: [
            _registration(20_000),
            *[frame(Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)] * 20,
            *[frame(Code.GET_BROKER_CLUSTER_INFO)] * 20,
            frame(Code.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "hostile"}),
            frame(Code.ADD_WRITE_PERM_OF_BROKER, {"brokerName": "hostile"}),
            *[frame(Code.GET_TOPICS_BY_CLUSTER, {"cluster": "c"})] * 20,
        ],
    )


def _registration(topics: int) -> bytes:
    table = {f"T{n}": {"topicName": f"T{n}", "readQueueNums": 8} for n in range(topics)}
    wrapper = {"topicConfigTable": table, "dataVersion": {"counter": 1, "timestamp": 1}}
    body = to_json({"filterServerList": [], "topicConfigSerializeWrapper": wrapper})
    return frame(Code.REGISTER_BROKER, WITH_BODY["namesrv"][Code.REGISTER_BROKER], body)


def _pipelines() -> Iterator[Attack]:
    value = b"namesrvAddr=" + b";".join(b"127.0.0.1:9876" for _ in range(1_000))
    yield Attack(
        "25 600 changes beside a long value",
        "broker",
        lambda: [
            frame(Code.UPDATE_BROKER_CONFIG, None, value),
            *(
                frame(Code.UPDATE_BROKER_CONFIG, None, b"maxMessageSize=%d" % n)
                for n in range(4_000_000, 4_000_600)
            ),
            frame(Code.UPDATE_BROKER_CONFIG, None, b"maxMessageSize=4194304"),
            frame(Code.UPDATE_BROKER_CONFIG, None, b"namesrvAddr="),
        ],
    )
    yield Attack(
        "100 1,000 changes beside a long value",
        "namesrv",
        lambda: [
            frame(Code.PUT_KV_CONFIG, {"namespace": "N", "key": "long", "value": "v" * 60_000}),
            *(
                frame(Code.PUT_KV_CONFIG, {"namespace": "N", "key": f"{n}", "value": "v"})
                for n in range(1_000)
            ),
        ],
    )
    yield Attack(
        "26, 21, 201, 43, 28 pipelined",
        "broker",
        lambda: [frame(code) for code in (26, 21, 201, 43, 28) for _ in range(200)],
    )
    yield Attack(
        "unknown codes pipelined", "broker", lambda: [frame(40_000 + n) for n in range(20_000)]
    )
    yield Attack(
        "10 sends on the slow path",
        "broker",
        lambda: [frame(310, send_header(TOPIC, "DELAY\x013"), b"x") for _ in range(20_000)],
    )
