"""Inventories of Gantry brokers: the table of topics, groups or clients in one answer.

A Gantry broker announces the private request codes in its runtime information. RocketMQ's brokers
lack the codes: callers need a fallback for brokers without an inventory.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar, cast

from console.gateway.brokers.listing import ask_masters
from console.gateway.engine.answers import Partial, merge_failures
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from core_broker.client.admin.inventory import offered_codes
from core_broker.remoting.bodies.inventory import (
    ClientInventoryBody,
    GroupInventoryBody,
    TopicInventoryBody,
)
from core_broker.remoting.codes import RequestCode

T = TypeVar("T")
E = TypeVar("E")

OFFERS_FRESH_MS = 5_000
INVENTORY_FRESH_MS = 1_500
INVENTORY_DEADLINE_MS = 12_000


@question(fresh_for_ms=OFFERS_FRESH_MS)
async def offers(session: ClusterSession) -> Partial[Mapping[BrokerRef, frozenset[int]]]:
    """The private request codes of every broker."""
    found, failures = await ask_masters(
        session,
        lambda ref: session.admin.runtime_info(ref.addr),
        one_must_answer=False,
        keep=("runtime_info",),
    )
    return Partial({ref: offered_codes(table) for ref, table in found.items()}, failures)


@question(fresh_for_ms=INVENTORY_FRESH_MS, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def topic_inventory(
    session: ClusterSession,
) -> Partial[Mapping[BrokerRef, TopicInventoryBody]]:
    """The topic inventories of Gantry brokers."""
    return await _ask(session, RequestCode.GET_TOPIC_INVENTORY, session.admin.topic_inventory)


@question(fresh_for_ms=INVENTORY_FRESH_MS, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def group_inventory(
    session: ClusterSession,
) -> Partial[Mapping[BrokerRef, GroupInventoryBody]]:
    """The group inventories of Gantry brokers."""
    return await _ask(session, RequestCode.GET_GROUP_INVENTORY, session.admin.group_inventory)


@question(fresh_for_ms=INVENTORY_FRESH_MS)
async def client_inventory(
    session: ClusterSession,
) -> Partial[Mapping[BrokerRef, ClientInventoryBody]]:
    """The client inventories of Gantry brokers."""
    return await _ask(session, RequestCode.GET_ALL_CLIENTS, session.admin.all_clients)


async def _ask(
    session: ClusterSession, code: RequestCode, ask: Callable[[str], Awaitable[T]]
) -> Partial[Mapping[BrokerRef, T]]:
    offered = await session.ask(offers)
    refs = [ref for ref, codes in offered.value.items() if code in codes]
    found, failures = await session.fan_out(
        refs, lambda ref: ask(ref.addr), one_must_answer=False, keep=(code,)
    )
    return Partial(found, merge_failures(offered.failures, failures))


def complete_entries(
    entries: Mapping[BrokerRef, Mapping[str, E]], configs: Mapping[BrokerRef, Mapping[str, object]]
) -> dict[str, list[E]]:
    """Return the entries of each topic or group, of all brokers with the name; without names that
    the inventory of such a broker lacks.
    """
    parts: dict[str, list[E | None]] = {}
    for ref, table in configs.items():
        of_broker = entries.get(ref, {})
        for name in table:
            parts.setdefault(name, []).append(of_broker.get(name))
    complete = {name: found for name, found in parts.items() if None not in found}
    return cast("dict[str, list[E]]", complete)
