"""Signed sends to a broker with access control: on the fast path, and within a replay window."""

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core_broker.client import AclRpcHook, AdminClient, Message, Producer
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from tests.support.access_rules import signed
from tests.support.cluster import Cluster
from tests.support.send_frames import common_case_fields, frame

ALICE = AclRpcHook("alice", "12345678")
BODY = b"body"


def secured(folder: Path, **settings: Any) -> Cluster:
    """A broker whose only user is alice."""
    folder.mkdir(exist_ok=True)
    first = json.dumps({"username": "alice", "password": "12345678"})
    access = {"authentication_enabled": True, "init_authentication_user": first}
    return Cluster(folder, **access, **settings)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with secured(tmp_path) as started:
        yield started


def varz(cluster: Cluster) -> Any:
    port = cluster.http_ports["broker"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/varz", timeout=60) as answer:
        return json.load(answer)


async def codes_of(addr: str, *frames: bytes) -> list[int]:
    """Send frames on one connection, each after the answer to the one before."""
    host, _, port = addr.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    splitter, codes = FrameSplitter(1 << 24), list[int]()
    for each in frames:
        writer.write(each)
        answers = list[RemotingCommand]()
        while not answers:
            answers = splitter.feed(await reader.read(65536))
        codes += [answer.code for answer in answers]
    writer.close()
    await writer.wait_closed()
    return codes


async def test_signed_sends_of_a_client_take_the_fast_path(cluster: Cluster) -> None:
    async with Producer("PG", cluster.namesrv_addr, rpc_hooks=[ALICE]) as producer:
        for number in range(10):
            await producer.send(Message("Signed", b"%d" % number))
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=[ALICE]) as admin:
        stored = await admin.topic_stats(cluster.broker_addr, "Signed")
    assert sum(offsets.max_offset for offsets in stored.values()) >= 10
    kernel = varz(cluster)["kernel"]
    assert not kernel["is_compiled"] or kernel["messages_sent"] > 0


async def test_a_replayed_send_is_refused_within_the_window_only(tmp_path: Path) -> None:
    def send(born_ms: int, number: int = 1) -> bytes:
        fields = common_case_fields(number) | {"g": str(born_ms)}
        return frame(signed(fields, BODY), BODY, code=RequestCode.SEND_MESSAGE_V2)

    now_ms = int(time.time() * 1000)
    captured, old = send(now_ms), send(now_ms - 7_200_000)
    yes, no = ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION
    with secured(tmp_path / "open") as cluster:
        assert await codes_of(cluster.broker_addr, captured, captured, old) == [yes, yes, yes]
    with secured(tmp_path / "strict", access_replay_window_seconds=3600) as cluster:
        frames = (captured, captured, send(now_ms, 2), captured, old)
        assert await codes_of(cluster.broker_addr, *frames) == [yes, no, yes, no, no]
        assert varz(cluster)["access_control"]["refused"] == {"replayed": 3}
