"""Every request code of the name server over a real socket, with the bodies of RocketMQ."""

import asyncio
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import json

from core_broker.config import NamesrvConfig
from core_broker.remoting.codes import SerializeType
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from core_broker.service import monotonic_ms
from namesrv.routes import BROKER_EXPIRY_MS
from namesrv.server import NameServer
from tests.support.eventually import eventually
from tests.unit.namesrv.namesrv_client import NamesrvClient
from tests.unit.namesrv.registrations import broker, registration, topic

# Written by Java 4.9.8's RegisterBrokerBody.encode(true): topics T1 (2 read queues, 3 write queues)
# and %RETRY%G (1 and 1), data version 0 at 1700000000000, filter server 1.2.3.4:5.
JAVA_COMPRESSED = bytes.fromhex(
    "78da63606050af564ace2fcd2b492d52b232d0512ac9cc4d2d2e49cc2d50b232343740805a06060626209654"
    "0d720d098a5475573004423385604f3f771fd7f8104777a0a47088a182918231ba306fb492a19e919eb19e89"
    "95a9522c003e571997"
)


async def test_registration_and_route_in_both_dialects(client: NamesrvClient) -> None:
    body = registration(topic("T1"))
    crc = str(zlib.crc32(body) & 0x7FFFFFFF)
    answer = await client.request(103, broker(bodyCrc32=crc), body)
    assert (answer.code, answer.ext_fields, answer.body) == (0, {}, b"")
    tail = (
        b'"brokerName":"broker-a","cluster":"DefaultCluster"}],"filterServerTable":{},'
        b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":2,"topicSysFlag":0,'
        b'"writeQueueNums":2}]}'
    )
    quoted = b'{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:20911"},' + tail
    unquoted = b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:20911"},' + tail
    assert (await client.request(105, {"topic": "T1"})).body == quoted
    assert (await client.request(105, {"topic": "T1"}, version=401)).body == quoted
    assert (await client.request(105, {"topic": "T1"}, version=400)).body == unquoted
    fields = {"topic": "T1", "acceptStandardJsonOnly": "true"}
    assert (await client.request(105, fields, version=63)).body == quoted
    of_5 = quoted.replace(
        b'"cluster":"DefaultCluster"', b'"cluster":"DefaultCluster","enableActingMaster":false'
    )
    assert (await client.request(105, {"topic": "T1"}, version=412)).body == of_5
    assert (await client.request(105, {"topic": "T1"}, version=411)).body == quoted


async def test_members_of_a_cluster_in_the_form_of_rocketmq_5(client: NamesrvClient) -> None:
    async def broker_of(version: int) -> dict[str, object]:
        body = json.decode((await client.request(106, version=version)).body)
        member: dict[str, object] = body["brokerAddrTable"]["broker-a"]
        return member

    await client.request(103, broker(), registration(topic("T1")))
    assert "enableActingMaster" not in await broker_of(411)
    assert (await broker_of(412))["enableActingMaster"] is False


async def test_a_compressed_registration_of_java(client: NamesrvClient) -> None:
    answer = await client.request(103, broker(compressed="true"), JAVA_COMPRESSED)
    assert answer.code == 0
    route = json.decode((await client.request(105, {"topic": "T1"})).body)
    assert route["queueDatas"][0]["readQueueNums"] == 2
    assert route["queueDatas"][0]["writeQueueNums"] == 3
    assert route["filterServerTable"] == {"127.0.0.1:20911": ["1.2.3.4:5"]}
    assert (await client.request(105, {"topic": "%RETRY%G"})).code == 0


async def test_a_registration_from_before_filter_servers(client: NamesrvClient) -> None:
    body = json.encode({"topicConfigTable": {"OLD": topic("OLD")}})
    assert (await client.request(103, broker(), body, version=35)).code == 0
    assert (await client.request(105, {"topic": "OLD"})).code == 0


async def test_a_registration_without_body(client: NamesrvClient, server: NameServer) -> None:
    assert (await client.request(103, broker())).code == 0
    assert list(server.routes.live) == ["127.0.0.1:20911"]


async def test_a_wrong_checksum_is_refused(client: NamesrvClient) -> None:
    answer = await client.request(103, broker(bodyCrc32="12345"), registration(topic("T1")))
    assert (answer.code, answer.remark) == (1, "crc32 not match")


async def test_the_response_to_a_slave_has_the_master(client: NamesrvClient) -> None:
    await client.request(103, broker(), registration(topic("T1")))
    answer = await client.request(103, broker(addr="127.0.0.1:20921", brokerId="1"))
    assert answer.ext_fields == {
        "masterAddr": "127.0.0.1:20911",
        "haServerAddr": "192.0.2.2:20912",
    }


async def test_an_unknown_topic_has_javas_remark(client: NamesrvClient) -> None:
    answer = await client.request(105, {"topic": "%RETRY%CG1"})
    assert answer.code == 17
    assert answer.remark == (
        "No topic route info in name server for the topic: %RETRY%CG1\n"
        "See http://rocketmq.apache.org/docs/faq/ for further details."
    )


async def test_a_cached_route_follows_every_change(client: NamesrvClient) -> None:
    async def perms() -> list[int]:
        route = json.decode((await client.request(105, {"topic": "T1"})).body)
        return [each["perm"] for each in route["queueDatas"]]

    await client.request(103, broker(), registration(topic("T1")))
    assert await perms() == [6]
    assert (await client.request(205, {"brokerName": "broker-a"})).ext_fields == {
        "wipeTopicCount": "1"
    }
    assert await perms() == [4]
    assert (await client.request(327, {"brokerName": "broker-a"})).ext_fields == {
        "addTopicCount": "1"
    }
    assert await perms() == [6]
    await client.request(103, broker(), registration(topic("T1", perm=2), counter=2))
    assert await perms() == [2]
    await client.request(103, broker("b", "127.0.0.1:2"), registration(topic("T1", perm=4)))
    assert await perms() == [2, 4]
    await client.request(104, broker("b", "127.0.0.1:2"))
    assert await perms() == [2]


async def test_a_lost_connection_removes_routes(client: NamesrvClient, server: NameServer) -> None:
    other = NamesrvClient(client.addr)
    await other.request(103, broker(), registration(topic("T1")))
    assert (await client.request(105, {"topic": "T1"})).code == 0
    await other.remoting.close()
    await eventually(lambda: not server.routes.live)
    assert (await client.request(105, {"topic": "T1"})).code == 17


async def test_brokers_without_heartbeat_are_disconnected(
    client: NamesrvClient, server: NameServer
) -> None:
    other = NamesrvClient(client.addr)
    await other.request(103, broker(), registration(topic("T1")))
    connection = await other.remoting.connection(other.addr)
    server.remove_expired_brokers(monotonic_ms())
    assert server.routes.live
    server.remove_expired_brokers(monotonic_ms() + BROKER_EXPIRY_MS + 1)
    assert not server.routes.live
    await eventually(lambda: connection.closed)
    await other.remoting.close()


async def test_the_scan_runs_by_itself(config: NamesrvConfig) -> None:
    server = NameServer(replace(config, scan_not_active_broker_interval=5))
    scanned = asyncio.Event()
    server.remove_expired_brokers = lambda now_ms: scanned.set()  # type: ignore[method-assign]
    await server.start()
    async with asyncio.timeout(60):
        await scanned.wait()
    await server.stop()


async def test_data_version_query(client: NamesrvClient) -> None:
    version = b'{"counter":1,"timestamp":1795251271076}'
    answer = await client.request(322, broker(), version)
    assert (answer.ext_fields, answer.body) == ({"changed": "true"}, b"")
    await client.request(103, broker(), registration(topic("T1")))
    answer = await client.request(322, broker(), version)
    assert answer.ext_fields == {"changed": "false"}
    assert json.decode(answer.body) == json.decode(version)
    answer = await client.request(322, broker(), b'{"counter":2,"timestamp":1795251271076}')
    assert answer.ext_fields == {"changed": "true"}


async def test_cluster_info_and_topic_lists(client: NamesrvClient) -> None:
    async def topics(code: int, fields: dict[str, str] | None = None) -> list[str]:
        answer = json.decode((await client.request(code, fields)).body)
        return sorted(answer["topicList"])

    assert await topics(206) == []
    unit, both = topic("UNIT", topicSysFlag=1), topic("BOTH", topicSysFlag=3)
    await client.request(103, broker(), registration(topic("T1"), unit, both))
    await client.request(
        103,
        broker("broker-b", "127.0.0.1:20921", clusterName="Other"),
        registration(topic("SUB", topicSysFlag=2)),
    )
    info = json.decode((await client.request(106)).body)
    assert info["clusterAddrTable"] == {"DefaultCluster": ["broker-a"], "Other": ["broker-b"]}
    assert info["brokerAddrTable"]["broker-a"] == {
        "brokerAddrs": {"0": "127.0.0.1:20911"},
        "brokerName": "broker-a",
        "cluster": "DefaultCluster",
    }
    assert await topics(206) == ["BOTH", "SUB", "T1", "UNIT"]
    assert await topics(224, {"cluster": "Other"}) == ["SUB"]
    assert await topics(224, {"cluster": "Nowhere"}) == []
    assert await topics(311) == ["BOTH", "UNIT"]
    assert await topics(312) == ["BOTH", "SUB"]
    assert await topics(313) == ["SUB"]
    system = json.decode((await client.request(304)).body)
    assert sorted(system["topicList"]) == ["DefaultCluster", "Other", "broker-a", "broker-b"]
    assert system["brokerAddr"] == "127.0.0.1:20911"
    assert (await client.request(216, {"topic": "T1", "clusterName": "Other"})).code == 0
    assert "T1" in await topics(206)
    assert (await client.request(216, {"topic": "T1"})).code == 0
    assert "T1" not in await topics(206)


async def test_key_values_survive_a_restart(client: NamesrvClient, config: NamesrvConfig) -> None:
    pair = {"namespace": "NSX", "key": "k1"}
    answer = await client.request(101, pair)
    assert (answer.code, answer.remark) == (22, "No config item, Namespace: NSX Key: k1")
    assert (await client.request(100, {**pair, "value": "v1"})).code == 0
    assert (await client.request(101, pair)).ext_fields == {"value": "v1"}
    assert (await client.request(219, {"namespace": "NSX"})).body == b'{"table":{"k1":"v1"}}'
    answer = await client.request(219, {"namespace": "NSY"})
    assert (answer.code, answer.remark) == (22, "No config item, Namespace: NSY")
    second = NameServer(config)
    await second.start()
    other = NamesrvClient(f"127.0.0.1:{second.port}")
    assert (await other.request(101, pair)).ext_fields == {"value": "v1"}
    assert (await other.request(102, pair)).code == 0
    assert (await other.request(102, pair)).code == 0
    assert (await other.request(101, pair)).code == 22
    await other.remoting.close()
    await second.stop()
    assert json.decode(Path(config.kv_config_path).read_bytes()) == {"configTable": {"NSX": {}}}


async def test_the_response_reports_a_failed_write(
    client: NamesrvClient, config: NamesrvConfig
) -> None:
    Path(config.kv_config_path).mkdir(parents=True)
    answer = await client.request(100, {"namespace": "N", "key": "k", "value": "v"})
    assert answer.code == 1
    assert "changed in memory only" in (answer.remark or "")


async def test_order_topics_go_to_brokers_and_routes(client: NamesrvClient) -> None:
    await client.request(
        100, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "broker-a:2"}
    )
    answer = await client.request(103, broker(), registration(topic("T1")))
    assert answer.body == b'{"table":{"T1":"broker-a:2"}}'
    assert b"orderTopicConf" not in (await client.request(105, {"topic": "T1"})).body
    assert (await client.request(318, body=b"orderMessageEnable=true\n")).code == 0
    route = json.decode((await client.request(105, {"topic": "T1"})).body)
    assert route["orderTopicConf"] == "broker-a:2"
    await client.request(
        100, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "broker-a:4"}
    )
    route = json.decode((await client.request(105, {"topic": "T1"})).body)
    assert route["orderTopicConf"] == "broker-a:4"
    assert (await client.request(318, body=b"returnOrderTopicConfigToBroker=false\n")).code == 0
    assert (await client.request(103, broker(), registration(topic("T1")))).body == b""


async def test_settings_are_shown_changed_and_kept(
    client: NamesrvClient, config: NamesrvConfig
) -> None:
    assert b"orderMessageEnable=false\n" in (await client.request(319)).body
    assert (await client.request(318, body=b"orderMessageEnable=true\n")).code == 0
    assert b"orderMessageEnable=true\n" in (await client.request(319)).body
    assert "orderMessageEnable=true\n" in Path(config.config_store_path).read_text()


@pytest.mark.parametrize(
    ("body", "code", "remark"),
    [
        (b"kvConfigPath=/x\n", 16, "Can not update config in black list."),
        (b"configStorePath=/x\n", 16, "Can not update config in black list."),
        (b"listenPort=1\n", 1, "the key is read at the start only"),
        (b"orderMessagEnable=true\n", 1, "did you mean orderMessageEnable?"),
        (b"orderMessageEnable=\xff\n", 1, "expected true or false"),
        (b"\x00\x01\\u12=\n", 1, "expected a known key"),
        (b"", 0, None),
    ],
)
async def test_updates_of_other_keys_are_refused(
    client: NamesrvClient, server: NameServer, body: bytes, code: int, remark: str | None
) -> None:
    answer = await client.request(318, body=body)
    assert answer.code == code
    assert remark is None or remark in (answer.remark or "")


async def test_unknown_codes_are_answered_on_one_connection(client: NamesrvClient) -> None:
    """Including request codes of brokers, and numbers outside the range of codes."""
    for code in (-1, 0, 10, 310, 9999, 200050, 2**31 - 1, -(2**31)):
        answer = await client.request(code)
        assert (answer.code, answer.remark) == (3, f" request type {code} not supported")
    assert len(client.remoting.connections) == 1


async def test_a_binary_request_gets_a_binary_response(client: NamesrvClient) -> None:
    answer = await client.request(
        101, {"namespace": "a", "key": "b"}, serialize_type=SerializeType.ROCKETMQ
    )
    assert answer.serialize_type == SerializeType.ROCKETMQ
    assert answer.code == 22


@pytest.mark.parametrize(
    ("code", "fields", "body"),
    [
        (103, {}, b""),
        (103, broker(brokerId="x"), b""),
        (103, broker(brokerId="9" * 30), b""),
        (103, broker(), b"{"),
        (103, broker(), b"[]"),
        (103, broker(), b"[" * 100_000),
        (103, broker(), b'{"topicConfigSerializeWrapper":7}'),
        (103, broker(compressed="true"), b"no zlib"),
        (103, broker(compressed="true"), JAVA_COMPRESSED[:40]),
        (103, broker(compressed="true"), zlib.compress(b"\x7f\xff\xff\xff")),
        (103, broker(compressed="true"), zlib.compress(b"\0" * 200_000_000, 9)),
        (104, {}, b""),
        (105, {}, b""),
        (322, broker(), b"\xff"),
        (100, {"namespace": "n"}, b""),
        (101, {}, b""),
        (205, {}, b""),
        (216, {}, b""),
        (224, {}, b""),
    ],
)
async def test_malformed_requests_are_answered_and_change_nothing(
    client: NamesrvClient, server: NameServer, code: int, fields: dict[str, str], body: bytes
) -> None:
    answer = await client.request(code, fields, body)
    assert answer.code == 1
    assert answer.remark
    assert not server.routes.live
    assert (await client.request(206)).code == 0


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 64,
        b"\x00" * 8,
        b"\x00\x00\x00\x10\x07\x00\x00\x04xxxxxxxxxxxx",
        b'\x00\x00\x00\x0c\x00\x00\x00\x08{"code":',
        b"\x00\x00\x00\x08\xff\xff\xff\xff\x00\x00\x00\x00",
    ],
)
async def test_bytes_outside_a_frame_close_the_connection(
    client: NamesrvClient, data: bytes
) -> None:
    host, _, port = client.addr.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    assert (await client.request(206)).code == 0


async def test_a_oneway_registration_is_not_answered(
    client: NamesrvClient, server: NameServer
) -> None:
    registering = RemotingCommand.request(103, broker(), registration(topic("T1")))
    registering.flag, registering.opaque = 2, 1  # bit 1: one-way
    query = RemotingCommand.request(206)
    query.opaque = 2
    host, _, port = client.addr.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(registering.encode() + query.encode())
    writer.write_eof()
    async with asyncio.timeout(60):
        responses = FrameSplitter().feed(await reader.read())
    writer.close()
    await writer.wait_closed()
    assert [response.opaque for response in responses] == [query.opaque]
    assert json.decode(responses[0].body)["topicList"] == ["T1"]


async def test_internals_are_visible(client: NamesrvClient, server: NameServer) -> None:
    await client.request(103, broker(), registration(topic("T1")))
    assert server.readiness.ready
    page = server.varz()
    assert page["brokers"]["127.0.0.1:20911"]["name"] == "broker-a"
    assert page["requests"] == {"103": 1}
    assert server.side_port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", server.side_port.port)
    writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(60):
        text = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    assert 'rocketmq_namesrv_topics{node_type="nameserver"} 1.0' in text
    assert 'rocketmq_namesrv_requests_total{node_type="nameserver",request_code="103"} 1.0' in text
