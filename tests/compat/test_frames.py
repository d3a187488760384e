"""Frames of foreign clients, byte for byte, against a running broker."""

import json
import socket
import struct

from tests.compat.broker_state import create_topic
from tests.support.cluster import Cluster


def exchange(addr: str, header: str, body: bytes = b"") -> dict[str, object]:
    """Send one frame; return the raw JSON header of the response."""
    host, _, port = addr.rpartition(":")
    head = header.encode()
    frame = struct.pack(">ii", 4 + len(head) + len(body), len(head)) + head + body
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(frame)
        stream = connection.makefile("rb")
        _, header_length = struct.unpack(">ii", stream.read(8))
        answer: dict[str, object] = json.loads(stream.read(header_length))
    return answer


def test_numbers_and_booleans_as_the_node_client_sends_them(shared_cluster: Cluster) -> None:
    topic = create_topic(shared_cluster, "FrameNode", queues=1)
    answer = exchange(
        shared_cluster.broker_addr,
        '{"code":310,"language":"JAVA","opaque":7,"flag":0,"version":121,"extFields":{"a":"PG",'
        f'"b":"{topic}","c":"TBW102","d":4,"e":0,"f":0,"g":1700000000000,"h":0,'
        '"i":"KEYS\\u0001k\\u0002","j":0,"k":false,"Signature":"x","AccessKey":"ak",'
        '"OnsChannel":"ALIYUN"}}',
        b"body",
    )
    assert (answer["code"], answer["opaque"]) == (0, 7)
    fields = answer["extFields"]
    assert isinstance(fields, dict)
    assert fields["queueOffset"] == "0"
    assert all(isinstance(value, str) for value in fields.values())


def test_the_header_of_the_cpp_client_ends_with_a_newline(shared_cluster: Cluster) -> None:
    topic = create_topic(shared_cluster, "FrameCpp", queues=1)
    answer = exchange(
        shared_cluster.broker_addr,
        '{"code":10,"extFields":{"AccessKey":"","OnsChannel":"ALIYUN","Signature":'
        '"LhzDrtB/k0z12a6eQehZG2eEYEA=","batch":"0","bornTimestamp":"1700000000000",'
        '"defaultTopic":"TBW102","defaultTopicQueueNums":4,"flag":0,"producerGroup":"PG",'
        '"properties":"WAIT\\u0001true\\u0002","queueId":0,"reconsumeTimes":"0","sysFlag":0,'
        f'"topic":"{topic}","unitMode":"0"}},"flag":0,"language":"CPP","opaque":3,"remark":"",'
        '"version":63}\n',
        b"body",
    )
    assert answer["code"] == 0
    fields = answer["extFields"]
    assert isinstance(fields, dict)
    assert fields["queueId"] == "0"
