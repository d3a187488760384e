"""Senders without a valid signature beside a signed canary: all are refused, and no other waits.

SENDS sets the requests of each connection.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path

import pytest

from core_broker.auth import refusals
from core_broker.client.acl import AclRpcHook
from core_broker.remoting.bodies import (
    AclInfo,
    PolicyEntryInfo,
    PolicyInfo,
    UserInfo,
    encode_body,
)
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import CreateTopicRequestHeader
from tests.crash.drill import beside_canary, exchange, holds, varz
from tests.support.canary import TIMEOUT_MS, missing
from tests.support.cluster import PATIENT, Cluster
from tests.support.hostile_senders import (
    CANARY,
    CAPTURED,
    DISABLED,
    HOSTILE,
    POWERLESS,
    TOPIC,
    HostileSender,
)
from tests.support.secured_cluster import ROOT, secured_cluster

pytestmark = pytest.mark.crash

SENDS = int(os.environ.get("SENDS", "400"))
CONNECTIONS_PER_KIND = 2
#: Maximum time for the answers to a flood; every send has one.
FLOOD_S = 120.0
#: The hostile senders' address: refusals and waits are counted by address.
THERE = "127.0.0.8"
#: Floods until the hostile senders, and not the machine, held the loop.
RUNS_MAX = 3
USERS = {CANARY, CAPTURED, POWERLESS, DISABLED}
#: Reasons of refusals that let an account wait; the wait is a reason of its own.
GUESSED = {"bad-signature", "unknown-account"}
LOGGED = "refused request code"
#: Settings of the broker. The window is long: a slow machine must not make the canary's sends old.
SETTINGS = PATIENT | {
    "access_replay_window_seconds": 3_600,
    "max_access_failures": 50,
    "max_access_back_off_seconds": 2,
}


@asynccontextmanager
async def as_root(cluster: Cluster) -> AsyncIterator[RemotingClient]:
    client = RemotingClient(name="root", rpc_hooks=[AclRpcHook(ROOT.access_key, ROOT.secret_key)])
    try:
        yield client
    finally:
        await client.close()


async def create_topic_and_users(cluster: Cluster) -> None:
    async with as_root(cluster) as root:

        async def ask(code: Code, fields: dict[str, str], body: UserInfo | AclInfo) -> None:
            command = RemotingCommand.request(code, fields, encode_body(body))
            answer = await root.invoke(cluster.broker_addr, command, TIMEOUT_MS)
            assert answer.code == ResponseCode.SUCCESS, answer.remark

        # Sends to a topic that is not yet on the disk wait; more than TASKS_MAX are refused.
        topic = CreateTopicRequestHeader(
            topic=TOPIC,
            default_topic="TBW102",
            read_queue_nums=1,
            write_queue_nums=1,
            perm=6,
            topic_filter_type="SINGLE_TAG",
        )
        created = await root.invoke(
            cluster.broker_addr,
            RemotingCommand.request(Code.UPDATE_AND_CREATE_TOPIC, topic),
            TIMEOUT_MS,
        )
        assert created.code == ResponseCode.SUCCESS, created.remark
        for user in USERS:
            info = UserInfo(username=user.access_key, password=user.secret_key)
            await ask(Code.AUTH_CREATE_USER, {"username": user.access_key}, info)
        for user in USERS - {POWERLESS}:
            subject = f"User:{user.access_key}"
            entry = PolicyEntryInfo(resource="*", actions=["Pub", "Sub"], decision="Allow")
            policies = [PolicyInfo(policy_type="Custom", entries=[entry])]
            info_of_list = AclInfo(subject=subject, policies=policies)
            await ask(Code.AUTH_CREATE_ACL, {"subject": subject}, info_of_list)
        off = UserInfo(username=DISABLED.access_key, user_status="disable")
        await ask(Code.AUTH_UPDATE_USER, {"username": DISABLED.access_key}, off)


async def stored(cluster: Cluster) -> int:
    """The number of messages in the flooded queue."""
    async with as_root(cluster) as root:
        command = RemotingCommand.request(Code.GET_MAX_OFFSET, {"topic": TOPIC, "queueId": "0"})
        answer = await root.invoke(cluster.broker_addr, command, TIMEOUT_MS)
        return int(answer.ext_fields["offset"])


async def flood(cluster: Cluster, senders: Iterable[HostileSender]) -> list[Counter[int]]:
    """The codes of the answers of each connection; all connections send at the same time."""
    many = chain.from_iterable([each] * CONNECTIONS_PER_KIND for each in senders)
    frames = [each.frames(number, SENDS) for number, each in enumerate(many)]
    addr = cluster.broker_addr
    return await asyncio.gather(*(exchange(addr, each, THERE, FLOOD_S) for each in frames))


async def grown_holds(
    cluster: Cluster, senders: list[HostileSender]
) -> tuple[int, list[Counter[int]]]:
    """The steps that held the event loop by computing during a flood, and the answers."""
    before = await asyncio.to_thread(cpu_holds, cluster)
    answers = await flood(cluster, senders)
    return await asyncio.to_thread(cpu_holds, cluster) - before, answers


def cpu_holds(cluster: Cluster) -> int:
    counts = holds(cluster, "broker")
    return sum(count for step, count in counts.items() if step.endswith(" cpu"))


def check_answers(answers: list[Counter[int]]) -> None:
    """Every send is refused with RocketMQ's code, but for the first of each captured one."""
    kinds = chain.from_iterable([name] * CONNECTIONS_PER_KIND for name in HOSTILE)
    for name, codes in zip(kinds, answers, strict=True):
        accepted = {ResponseCode.SUCCESS: 1} if HOSTILE[name].is_replay else {}
        refused = SENDS - sum(accepted.values())
        assert codes == accepted | {ResponseCode.NO_PERMISSION: refused}, name


def check_counters(cluster: Cluster, floods: int) -> None:
    """All refusals are counted, each with its reason."""
    counted = Counter(varz(cluster, "broker")["access_control"]["refused"])
    expected: Counter[str] = Counter()
    for each in HOSTILE.values():
        expected[each.reason] += floods * CONNECTIONS_PER_KIND * (SENDS - each.is_replay)
    guessed = sum(expected.pop(reason) for reason in GUESSED)
    assert sum(counted.pop(reason) for reason in (*GUESSED, "backing-off")) == guessed
    assert counted == expected


def check_log(cluster: Cluster, elapsed_s: float) -> None:
    """Each reason is logged once in an interval, not once per request, and only for the peers."""
    lines = [line for line in cluster.broker.printed.splitlines() if LOGGED in line]
    assert all(f"from {THERE}" in line for line in lines)
    reasons = Counter(
        reason
        for line in lines
        for reason in {*GUESSED, "backing-off", *(each.reason for each in HOSTILE.values())}
        if f": {reason}" in line
    )
    assert sum(reasons.values()) == len(lines)
    assert set(reasons) >= {each.reason for each in HOSTILE.values()}
    assert max(reasons.values()) <= 1 + elapsed_s // refusals.LOGGED_EVERY_S
    assert not any(user.secret_key in cluster.broker.printed for user in USERS)


@pytest.mark.timeout(600)
async def test_hostile_senders_are_refused_and_slow_nobody(tmp_path: Path) -> None:
    hostile = list(HOSTILE.values())
    valid = [HostileSender(CANARY, "")] * len(hostile)
    with secured_cluster(tmp_path, **SETTINGS) as cluster:
        await create_topic_and_users(cluster)
        begin_s = time.monotonic()
        async with beside_canary(cluster, CANARY) as messages:
            usual, answers = await grown_holds(cluster, valid)
            assert answers == [Counter({0: SENDS})] * len(answers)
            floods = 0
            for _ in range(RUNS_MAX):
                held, answers = await grown_holds(cluster, hostile)
                floods += 1
                check_answers(answers)
                if held <= usual:
                    break
        assert held <= usual
        assert {each.code for each in messages} == {0}
        assert await missing(cluster.broker_addr, messages, CANARY) == []
        replays = sum(each.is_replay for each in hostile) * floods
        accepted = CONNECTIONS_PER_KIND * (len(valid) * SENDS + replays)
        assert await stored(cluster) == accepted
        check_counters(cluster, floods)
        check_log(cluster, time.monotonic() - begin_s)
