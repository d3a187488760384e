"""mqadmin's commands for lists of topics and groups, and for the slaves of a broker."""

import asyncio
import json
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core_broker.mqadmin.lists import FILE_BYTES_MAX
from core_broker.processors.admission import LIST_MAX
from core_broker.remoting.bodies import (
    HAClientRuntimeInfo,
    HAConnectionRuntimeInfo,
    HARuntimeInfo,
    encode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.client.mqadmin_runs import Mqadmin
from tests.client.receiving import ClusterAddrs
from tests.support.scripted_peer import ScriptedPeer

CLUSTER = ("-c", "DefaultCluster")
TOPIC_LINE = "submit batch of topic config to {} success, please check the result later."
#: The commands, with the key of a name.
LISTS = [("updateTopicList", "topicName"), ("updateSubGroupList", "groupName")]
BAD_FILES: list[tuple[bytes, str]] = [
    (b"", "has no such list"),
    (b"{}", "has no such list"),
    (b'[{"perm": 6}]', "has no such list"),
    (b"[1]", "has no such list"),
    (b"[", "has no such list"),
    (b"\xff\xfe", "has no such list"),
    (b"[]", "has an empty list"),
    (b" " * (FILE_BYTES_MAX + 1), "divide the list"),
]


@pytest.fixture
def mqadmin(quick_cluster: ClusterAddrs) -> Mqadmin:
    return Mqadmin(quick_cluster.namesrv_addr)


@pytest.fixture
def broker(quick_cluster: ClusterAddrs) -> str:
    return quick_cluster.broker_addr


def written(path: Path, items: list[dict[str, Any]]) -> tuple[str, str]:
    path.write_text(json.dumps(items))
    return "-f", str(path)


def test_topics_of_a_file(mqadmin: Mqadmin, broker: str, tmp_path: Path) -> None:
    names = [f"listed-{secrets.token_hex(4)}-{number}" for number in (1, 2)]
    topics: list[dict[str, Any]] = [
        {"topicName": name, "readQueueNums": number, "writeQueueNums": number}
        for number, name in enumerate(names, 1)
    ]
    file = written(tmp_path / "topics.json", topics)
    assert mqadmin.lines("updateTopicList", *CLUSTER, *file) == [TOPIC_LINE.format(broker)]
    (queues,) = mqadmin.document("topicRoute", "-t", names[1])["queueDatas"]
    assert (queues["readQueueNums"], queues["writeQueueNums"], queues["perm"]) == (2, 2, 6)
    topics[0]["perm"] = 4
    file = written(tmp_path / "topics.json", topics)
    document = mqadmin.document("updateTopicList", "-b", broker, *file)
    assert document["created"] == [broker]
    assert [each["topicName"] for each in document["topicConfigList"]] == names
    (queues,) = mqadmin.document("topicRoute", "-t", names[0])["queueDatas"]
    assert queues["perm"] == 4


def test_groups_of_a_file(mqadmin: Mqadmin, broker: str, tmp_path: Path) -> None:
    name = f"listed-{secrets.token_hex(4)}"
    file = written(tmp_path / "groups.json", [{"groupName": name, "retryMaxTimes": 3}])
    line = "submit batch of {} config to {} success, please check the result later."
    assert mqadmin.lines("updateSubGroupList", "-b", broker, *file) == [
        line.format("group", broker)
    ]
    assert mqadmin.lines("updateSubGroupList", *CLUSTER, *file) == [
        line.format("subscription group", broker)
    ]
    (found,) = mqadmin.document("getConsumerConfig", "-g", name)["brokers"]
    assert found["config"]["retryMaxTimes"] == 3


@pytest.mark.parametrize(("command", "key"), LISTS)
def test_a_refused_list_creates_nothing(
    mqadmin: Mqadmin, broker: str, tmp_path: Path, command: str, key: str
) -> None:
    name = f"listed-{secrets.token_hex(4)}"
    items = [{key: name}, *({key: f"{name}-{number}"} for number in range(LIST_MAX))]
    file = written(tmp_path / "list.json", items)
    assert "send the list in parts" in mqadmin(command, "-b", broker, *file, code=1).stderr
    file = written(tmp_path / "list.json", [{key: name}, {key: "a b"}])
    assert "entry 2 of " in mqadmin(command, "-b", broker, *file, code=2).stderr
    if key == "topicName":
        assert name not in mqadmin.document("topicList")["topics"]
    else:
        mqadmin("getConsumerConfig", "-g", name, code=1)


@pytest.mark.parametrize(("command", "_key"), LISTS)
def test_a_file_without_a_list(
    mqadmin: Mqadmin, broker: str, tmp_path: Path, command: str, _key: str
) -> None:
    path = tmp_path / "list.json"
    for content, text in BAD_FILES:
        path.write_bytes(content)
        assert text in mqadmin(command, "-b", broker, "-f", str(path), code=2).stderr, content
    for unreadable in (tmp_path, tmp_path / "missing.json"):
        failed = mqadmin(command, "-b", broker, "-f", str(unreadable), code=1)
        assert f"{unreadable} cannot be read" in failed.stderr


def test_a_gantry_broker_has_no_slaves(mqadmin: Mqadmin, broker: str) -> None:
    for where in (("-b", broker), CLUSTER):
        (info,) = mqadmin.document("haStatus", *where)["brokers"].values()
        assert (info["master"], info["haConnectionInfo"]) == (True, [])
        lines = mqadmin.lines("haStatus", *where)
        assert lines[:2] == ["", f"#MasterAddr\t{broker}"]
        assert lines[3:] == [
            "#SlaveNum\t0",
            "#InSyncSlaveNum\t0",
            "#SlaveAddr                        #SlaveAckOffset             #Diff "
            "#TransferSpeed(KB/s)          #Status #TransferFromWhere",
        ]
    assert len(mqadmin.documents("haStatus", "-b", broker, "-i", "0", "--rounds", "2")) == 2
    assert "-b/--brokerAddr" in mqadmin("haStatus", code=2).stderr


@pytest.fixture
def peer() -> Iterator[ScriptedPeer]:
    """A broker with answers of the test, on an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    found = ScriptedPeer()
    try:
        yield asyncio.run_coroutine_threadsafe(found.__aenter__(), loop).result(60)
    finally:
        asyncio.run_coroutine_threadsafe(found.__aexit__(None, None, None), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_slaves_of_another_broker(mqadmin: Mqadmin, peer: ScriptedPeer) -> None:
    slave = HAConnectionRuntimeInfo(
        addr="10.0.0.2:41000",
        slave_ack_offset=900,
        diff=100,
        transferred_byte_in_second=1536,
        transfer_from_where=1000,
    )
    infos = iter(
        [
            HARuntimeInfo(master_commit_log_max_offset=1000, ha_connection_info=[slave]),
            HARuntimeInfo(
                master=False,
                ha_client_runtime_info=HAClientRuntimeInfo(
                    master_addr="10.0.0.1:10912", max_offset=900, transferred_byte_in_second=512
                ),
            ),
        ]
    )
    peer.on(
        RequestCode.GET_BROKER_HA_STATUS,
        lambda _: RemotingCommand.response(body=encode_body(next(infos))),
    )
    assert mqadmin.lines("haStatus", "-b", peer.addr)[-1] == (
        "10.0.0.2:41000                    900                           100"
        "             1.50      Fall Behind             1000"
    )
    lines = mqadmin.lines("haStatus", "-b", peer.addr)
    assert lines[1:4] == [
        "#MasterAddr\t10.0.0.1:10912",
        "#CommitLogMaxOffset\t900",
        "#TransferSpeed(KB/s)\t0.50",
    ]
