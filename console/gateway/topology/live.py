"""The question about the topology of a cluster."""

import asyncio

from console.gateway.brokers.listing import NAME_SERVER, broker_rows, masters
from console.gateway.clients import AllClients, all_clients
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import ClusterUnreachable
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.listing import group_configs, group_rows
from console.gateway.inventory import INVENTORY_DEADLINE_MS
from console.gateway.overview import dead_letter_totals, unless_down
from console.gateway.topics.listing import topic_configs, topic_rows
from console.gateway.topology.building import Registered, Sources, topology_of
from console.gateway.topology.measures import group_measures, topic_measures
from console.gateway.topology.model import Topology

#: Deadline of the topology, milliseconds: several questions after each other.
TOPOLOGY_DEADLINE_MS = 2 * INVENTORY_DEADLINE_MS


@question(fresh_for_ms=2_000)
async def registrations(session: ClusterSession) -> Partial[tuple[Registered, ...]]:
    """The brokers in the list of each name server, also of those that are down."""
    refs = [BrokerRef(NAME_SERVER, 0, addr) for addr in session.admin.namesrv_addrs]
    found, failures = await session.fan_out(
        refs,
        lambda ref: session.admin.cluster_info(ref.addr),
        one_must_answer=False,
        keep=("registrations",),
    )
    lost = {failure.addr for failure in failures}
    return Partial(
        tuple(
            Registered(
                ref.addr,
                tuple(sorted(found[ref].broker_addr_table)) if ref in found else None,
                ref.addr in lost,
            )
            for ref in refs
        ),
        failures,
    )


@question(fresh_for_ms=2_000, deadline_ms=TOPOLOGY_DEADLINE_MS, costly=True)
async def topology(session: ClusterSession) -> Partial[Topology]:
    """All nodes and edges, without the consume rates of edges (`consume_rates`)."""
    listed = await session.ask(registrations)
    brokers = await session.ask(broker_rows)
    # Before topics and groups, so that these lists have what the clients name.
    clients, client_failures, clients_ms = await _clients(session)
    topics, topic_failures = await unless_down(session, topic_rows)
    groups, group_failures = await unless_down(session, group_rows)
    failures = merge_failures(listed.failures, brokers.failures, topic_failures, group_failures)
    sources = Sources(
        listed.value, brokers.value, lost=await _lost(session, failures), complete=False
    )
    if topics is None or groups is None:
        return Partial(topology_of(sources), failures)
    letters, letter_failures = await unless_down(session, dead_letter_totals)
    of_topics = await session.ask(topic_measures)
    of_groups = await session.ask(group_measures)
    failures = merge_failures(
        failures, client_failures, letter_failures, of_topics.failures, of_groups.failures
    )
    sources = Sources(
        listed.value,
        brokers.value,
        topics,
        groups,
        AllClients((), len(groups)) if clients is None else clients,
        of_topics.value,
        of_groups.value,
        None if letters is None else {each.group: each.count for each in letters},
        await _lost(session, failures),
        await _listed_ms(session) >= clients_ms,
    )
    # Thousands of nodes take tens of milliseconds, too long for the gateway's event loop.
    return Partial(await asyncio.to_thread(topology_of, sources), failures)


async def _clients(
    session: ClusterSession,
) -> tuple[AllClients | None, tuple[BrokerFailure, ...], int]:
    """Return the clients, the failures and the time of the request; None when no broker answers."""
    try:
        answer = await session.ask(all_clients)
    except ClusterUnreachable as trouble:
        return None, trouble.failures, 0
    return answer.value, answer.failures, answer.asked_at_ms


async def _listed_ms(session: ClusterSession) -> int:
    """Return the time of the older one of the lists of topics and groups."""
    topics, groups = await session.ask(topic_configs), await session.ask(group_configs)
    return min(topics.asked_at_ms, groups.asked_at_ms)


async def _lost(session: ClusterSession, failures: tuple[BrokerFailure, ...]) -> frozenset[str]:
    """Return the names of the brokers that do not answer; a refusal is an answer."""
    silent = {failure.addr for failure in failures if failure.kind == "unreachable"}
    return frozenset(ref.name for ref in await masters(session) if ref.addr in silent)
