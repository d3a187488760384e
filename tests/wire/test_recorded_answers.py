"""Replay of every recorded request to a real broker or name server: the answers must be equal.

Equal means: response code, names of header fields, shape of the body, and the remark of a refusal.
DIFFERENCES lists the accepted differences with their reasons, and the differences must be exact.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

from core_broker.message.record import decode_records
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.command import RemotingCommand
from tests.support.cluster import Cluster, Program
from tests.wire.recorded import Recorded, recorded
from tests.wire.shapes import differences, names_in, shape_of
from tests.wire.stage import (
    SUBSCRIPTION_VERSION,
    come_online,
    commit,
    exchange,
    fill,
    order,
    register,
    whole_body,
)

NAMESRV_CODES = frozenset({100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 319, 327})
#: Requests recorded in a cluster without online clients.
OFFLINE = frozenset(
    {"203 GET_CONSUMER_CONNECTION_LIST -> 206", "204 GET_PRODUCER_CONNECTION_LIST -> 1"}
)
#: Pulls with a newer subscription than the broker's.
NOT_LATEST = frozenset({"11 PULL_MESSAGE -> 25"})
OLD = 1
SENDS = frozenset({Code.SEND_MESSAGE, Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE})
#: Requests whose answers may have another result than the recorded answer.
RECORDS = frozenset({Code.PULL_MESSAGE, Code.QUERY_MESSAGE, Code.VIEW_MESSAGE_BY_ID})


@dataclass(frozen=True)
class Differs:
    """An accepted difference of our answer, with the reason."""

    why: str
    code: int | None = None
    #: Header fields missing from our answer.
    without: frozenset[str] = frozenset()
    #: Paths of the body: "-" for optional members, "+" for members missing from the recording.
    body: tuple[str, ...] = ()


def pairs() -> Iterator[tuple[Recorded, Recorded]]:
    """Every recorded request to a server, with the answer."""
    frames = recorded()
    for request, answer in pairwise(frames):
        is_pair = not request.is_answer and answer.is_answer
        if is_pair and "broker to client" not in request.title:
            yield request, answer


PAIRS = list(pairs())
SAME = Differs("nothing differs")
_WITH_ACL = Differs(
    "recorded from a broker with access control; this test's brokers have none", code=0
)
_NEW = Differs("new in RocketMQ 5; Gantry answers like 4.9", code=3)
_FLAGS = Differs("fields of RocketMQ 5", without=frozenset({"groupSysFlag", "topicSysFlag"}))
_ID = Differs("a field of RocketMQ 5", without=frozenset({"transactionId"}))


def _members(*names: str) -> Differs:
    return Differs("members of RocketMQ 5", body=tuple(f"-{name}" for name in names))


_OF_4 = {
    "17 UPDATE_AND_CREATE_TOPIC -> 1": _WITH_ACL,
    "310 SEND_MESSAGE_V2 -> 1": _WITH_ACL,
    "52 GET_BROKER_CLUSTER_ACL_INFO -> 0": replace(_WITH_ACL, code=1),
    "43 GET_ALL_CONSUMER_OFFSET -> 0": Differs(
        "slaves of RocketMQ 5 need the version", body=("+.dataVersion",)
    ),
    "361 LITE_PULL_MESSAGE -> 3": Differs("lite pulls of 5.x clients are answered", code=19),
}
_OF_5 = {
    "11 PULL_MESSAGE -> 0": _FLAGS,
    "11 PULL_MESSAGE -> 19": Differs("the queue is not empty here", code=0),
    "11 PULL_MESSAGE -> 20": _FLAGS,
    "11 PULL_MESSAGE -> 25": Differs("an older subscription to everything will do", code=21),
    "11 PULL_MESSAGE -> 21": Differs("5.x resets offsets on the broker's side", code=20),
    "14 QUERY_CONSUMER_OFFSET -> 22": Differs("4.9 lets a group begin with the queue", code=0),
    "21 GET_ALL_TOPIC_CONFIG -> 0": _members(
        "attributes", "mappingDataVersion", "rmq_sys_wheel_timer", "stateVersion"
    ),
    "28 GET_BROKER_RUNTIME_INFO -> 0": _members(
        "brokerActive", "timerEnqueueTps", "timerOffsetBehind"
    ),
    "34 HEART_BEAT -> 0": Differs(
        "fields of RocketMQ 5", without=frozenset({"IS_SUB_CHANGE", "IS_SUPPORT_HEART_BEAT_V2"})
    ),
    "105 GET_ROUTEINFO_BY_TOPIC -> 17": Differs("5.x names another page of help", code=17),
    "201 GET_ALL_SUBSCRIPTIONGROUP_CONFIG -> 0": _members(
        *("forbiddenTable", "groupRetryPolicy", "stateVersion", "type", "attributes"),
        *("consumeMessageOrderly", "consumeTimeoutMinute", "groupSysFlag"),
    ),
    "202 GET_TOPIC_STATS_INFO -> 0": _members(".topicPutTps"),
    "208 GET_CONSUME_STATS -> 0": _members(".offsetTable.*.pullOffset"),
    "310 SEND_MESSAGE_V2 -> 0": _ID,
    "317 GET_BROKER_CONSUME_STATS -> 0": _members("pullOffset"),
    "320 SEND_BATCH_MESSAGE -> 0": _ID,
    "370 RECALL_MESSAGE -> 0": _NEW,
    "200050 POP_MESSAGE -> 0": _NEW,
    "200050 POP_MESSAGE -> 210": _NEW,
    "200051 ACK_MESSAGE -> 0": _NEW,
    "200053 CHANGE_MESSAGE_INVISIBLETIME -> 0": _NEW,
}
DIFFERENCES = {("java-4.9.8", title): differs for title, differs in _OF_4.items()} | {
    ("java-5.3.3", title): differs for title, differs in _OF_5.items()
}


@pytest.fixture(scope="module")
def namesrv_addr(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A name server with only the brokers of the recordings."""
    folder = tmp_path_factory.mktemp("recorded-namesrv")
    program = Program("namesrv", folder)
    files = {"kv_config_path": folder / "kv.json", "config_store_path": folder / "ns.conf"}
    program.start({"listen_port": 0, "http_port": -1, "bind_address": "127.0.0.1", **files})
    yield f"127.0.0.1:{program.port('remoting')}"
    program.stop()


class Stage:
    """A broker per version of the recordings, filled before its first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, tuple[Cluster, dict[str, str]]] = {}

    def open(self, source: str) -> tuple[str, dict[str, str]]:
        """Return the address of the broker, and the position of a message."""
        if source not in self._made:
            folder = self._folder / source
            folder.mkdir()
            cluster = Cluster(folder)
            # In the recordings of 4.9.8 the second queue of TA is empty.
            empty_queue = 1 if source == "java-4.9.8" else None
            self._made[source] = cluster, asyncio.run(fill(cluster, empty_queue))
        cluster, where = self._made[source]
        return cluster.broker_addr, where

    def namesrv_addr(self) -> str:
        """Return the address of a separate name server."""
        self.open("java-4.9.8")
        return self._made["java-4.9.8"][0].namesrv_addr

    def close(self) -> None:
        for cluster, _ in self._made.values():
            cluster.stop()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = Stage(tmp_path_factory.mktemp("recorded-brokers"))
    yield made
    made.close()


def frame_of(request: Recorded, where: dict[str, str]) -> bytes:
    """The recorded request, with commit-log positions of this run."""
    fields = dict(request.header.get("extFields") or {})
    for name in ("topic", "b"):
        # Sends must not change the topic that the recorded pulls read.
        if request.request_code in SENDS and fields.get(name) == "TA":
            fields[name] = "TT"
    if request.request_code == Code.CONSUMER_SEND_MSG_BACK:
        fields["offset"] = where["offset"]
    if request.request_code == Code.LITE_PULL_MESSAGE:
        fields["suspendTimeoutMillis"] = "1"
    if request.request_code == Code.CONSUME_MESSAGE_DIRECTLY:
        fields["msgId"] = where["id"]
    body = whole_body(request.request_code) if request.body is None else request.body
    header = dict(request.header)
    if fields:
        header["extFields"] = fields
    return replace(request, header=header, body=body).frame()


def compare(ours: RemotingCommand, theirs: Recorded, differs: Differs) -> list[str]:
    """Differences between our answer and the recorded answer, beyond the accepted ones."""
    found = []
    code = theirs.header["code"] if differs.code is None else differs.code
    if ours.code != code:
        found.append(f"code {ours.code} instead of {code}: {ours.remark}")
    if differs.code is not None:
        return found
    names = {*(theirs.header.get("extFields") or {})} - differs.without
    if {*ours.ext_fields} != names:
        found.append(f"header fields {sorted(ours.ext_fields)} instead of {sorted(names)}")
    remark = theirs.header.get("remark", "")
    if code and (ours.remark or "") != remark:
        found.append(f"remark {ours.remark!r} instead of {remark!r}")
    bodies = body_differences(ours.body, theirs)
    if not {*bodies} <= {*differs.body}:
        found.append(f"body: {bodies}")
    return found


def body_differences(ours: bytes, theirs: Recorded) -> list[str]:
    if theirs.request_code in RECORDS:
        return [] if bool(decode_records(ours)) == bool(theirs.start) else ["records"]
    if theirs.body is not None:
        return differences(shape_of(ours), shape_of(theirs.body))
    if theirs.start[:1] == b"{":
        return sorted(f"-{name}" for name in names_in(theirs.start) - names_in(ours))
    are_listings = all(re.match(rb"[\w.]+=", body) for body in (ours, theirs.start))
    return [] if are_listings else ["settings"]


@pytest.mark.parametrize(("request_", "answer"), PAIRS, ids=str)
async def test_the_answer_is_the_recorded_one(
    request_: Recorded, answer: Recorded, stage: Stage, namesrv_addr: str
) -> None:
    differs = DIFFERENCES.get((request_.source, request_.title), SAME)
    async with AsyncExitStack() as stack:
        where: dict[str, str] = {}
        if request_.request_code == Code.GET_KV_CONFIG:
            # A separate name server: registering brokers get its order topics.
            addr = await asyncio.to_thread(stage.namesrv_addr)
            await order(stack, addr)
        elif request_.request_code in NAMESRV_CODES:
            addr = namesrv_addr
            await register(stack, addr)
        else:
            addr, where = await asyncio.to_thread(stage.open, request_.source)
            await commit(stack, addr)
            if request_.title not in OFFLINE:
                version = OLD if request_.title in NOT_LATEST else SUBSCRIPTION_VERSION
                await come_online(stack, addr, version)
        ours = await exchange(addr, frame_of(request_, where))
    assert ours.is_response
    assert ours.opaque == request_.header["opaque"]
    assert not compare(ours, answer, differs)


def test_every_difference_is_of_a_recording() -> None:
    assert {*DIFFERENCES} <= {(request.source, request.title) for request, _ in PAIRS}
