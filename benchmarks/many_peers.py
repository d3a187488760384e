"""Scenarios with many peers; each returns metrics with the unit in the name.

idle-10000   10,000 idle connections, and their cost for active connections routes       a name
server with 100,000 routes, 1,000 registering brokers and 10,000 clients
"""

import asyncio
import resource
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.load import SCENARIOS, Scenario, begin, run
from benchmarks.processes import Measured, running, running_namesrv
from benchmarks.requests import route_template
from core_broker.remoting.bodies import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
    encode_register_body,
)
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers.cluster import RegisterBrokerRequestHeader

IDLE_CONNECTIONS: Final = 10_000

BROKERS: Final = 1_000
BROKERS_OF_A_TOPIC: Final = 2
TOPICS_OF_A_BROKER: Final = 200
TOPICS: Final = BROKERS * TOPICS_OF_A_BROKER // BROKERS_OF_A_TOPIC
REGISTER_SECONDS: Final = 30
CLIENTS: Final = 10_000
POLL_SECONDS: Final = 30
TOPICS_OF_A_CLIENT: Final = 3
ANSWER_MS_MAX: Final = 20_000


def idle(folder: Path, seconds: float) -> dict[str, Any]:
    """Open 10,000 idle connections, and send beside them."""
    allow_descriptors(IDLE_CONNECTIONS + 1_000)
    with running(folder) as cluster:
        alone = run(SCENARIOS["send-64x1"], cluster.broker_addr, seconds=seconds)
        before = cluster.broker.memory_mb()["anon"]
        host, _, port = cluster.broker_addr.rpartition(":")
        crowd = [socket.create_connection((host, int(port))) for _ in range(IDLE_CONNECTIONS)]
        beside = run(SCENARIOS["send-64x1"], cluster.broker_addr, seconds=seconds)
        after = cluster.broker.memory_mb()["anon"]
        quiet = _cpu_share(cluster.broker, lambda: time.sleep(seconds))
        for each in crowd:
            each.close()
    return {
        "idle_connections": IDLE_CONNECTIONS,
        "kib_per_connection": round((after - before) * 1024 / IDLE_CONNECTIONS, 2),
        "alone_per_second": alone["rate"],
        "beside_per_second": beside["rate"],
        "cpu_share_when_quiet": quiet,
    }


def routes(folder: Path, seconds: float) -> dict[str, Any]:
    """Register 1,000 brokers while 10,000 clients request routes."""
    allow_descriptors(BROKERS + 1_000)
    with running_namesrv(folder) as (namesrv, addr):
        return asyncio.run(_with_brokers(namesrv, addr, max(seconds, REGISTER_SECONDS)))


async def _with_brokers(namesrv: Measured, addr: str, seconds: float) -> dict[str, Any]:
    brokers = [RemotingClient(name=f"broker-{number}") for number in range(BROKERS)]
    frames = [_registration(number) for number in range(BROKERS)]
    began, cpu = time.perf_counter(), namesrv.cpu_seconds()
    for broker, frame in zip(brokers, frames, strict=True):
        await _register(broker, addr, frame)
    registered_seconds = time.perf_counter() - began
    first_cpu = namesrv.cpu_seconds() - cpu
    again = asyncio.create_task(_keep_registering(brokers, addr, frames))
    polls = CLIENTS * TOPICS_OF_A_CLIENT // POLL_SECONDS
    scenario = Scenario(CLIENTS, 1, _route_of_client, CLIENTS)
    cpu, began = namesrv.cpu_seconds(), time.perf_counter()
    asking = begin(scenario, addr, seconds=seconds, rate=polls)
    asked = await asyncio.to_thread(asking.figures)
    share = (namesrv.cpu_seconds() - cpu) / (time.perf_counter() - began)
    again.cancel()
    for broker in brokers:
        await broker.close()
    return {
        "routes": TOPICS,
        "brokers": BROKERS,
        "clients": CLIENTS,
        "first_registration_seconds": round(registered_seconds, 2),
        "first_registration_cpu_seconds": round(first_cpu, 2),
        "asked_per_second": asked["rate"],
        "registrations_per_second": BROKERS // REGISTER_SECONDS,
        "cpu_share": round(share, 4),
        "p50_us": asked["latency_us"]["p50"],
        "p99_us": asked["latency_us"]["p99"],
        "memory_mb": namesrv.memory_mb()["anon"],
    }


def _route_of_client(number: int) -> Any:
    return route_template(number * (TOPICS // CLIENTS), TOPICS)


async def _keep_registering(brokers: list[RemotingClient], addr: str, frames: list[Any]) -> None:
    while True:
        for broker, frame in zip(brokers, frames, strict=True):
            await _register(broker, addr, frame)
            await asyncio.sleep(REGISTER_SECONDS / BROKERS)


async def _register(
    broker: RemotingClient, addr: str, frame: tuple[RegisterBrokerRequestHeader, bytes]
) -> None:
    request = RemotingCommand.request(RequestCode.REGISTER_BROKER, *frame)
    await broker.invoke(addr, request, ANSWER_MS_MAX)


def _registration(number: int) -> tuple[RegisterBrokerRequestHeader, bytes]:
    """A broker's registration, sent every 30 s: 200 topics, shared with one other broker."""
    first = number // BROKERS_OF_A_TOPIC * TOPICS_OF_A_BROKER
    names = [f"Bench-{topic}" for topic in range(first, first + TOPICS_OF_A_BROKER)]
    table = {name: TopicConfig(topic_name=name) for name in names}
    body = RegisterBrokerBody(
        topic_config_serialize_wrapper=TopicConfigSerializeWrapper(
            topic_config_table=table, data_version=DataVersion(1, 0)
        )
    )
    header = RegisterBrokerRequestHeader(
        broker_name=f"broker-{number}",
        broker_addr=f"10.0.{number // 250}.{number % 250}:10911",
        cluster_name=f"cluster-{number // 10}",
        ha_server_addr="",
        broker_id=0,
        compressed=True,
    )
    return header, encode_register_body(body, compressed=True)


def allow_descriptors(count: int) -> None:
    """Raise the open-file limit of the process; SystemExit names the limit to raise."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise SystemExit(f"This needs {count:,} open files; raise the hard limit (ulimit -Hn).")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


def _cpu_share(process: Measured, during: Callable[[], None]) -> float:
    began, cpu = time.perf_counter(), process.cpu_seconds()
    during()
    return round((process.cpu_seconds() - cpu) / (time.perf_counter() - began), 4)


BY_NAME: Final = {"idle-10000": idle, "routes": routes}
