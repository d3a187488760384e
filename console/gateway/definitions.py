"""The definitions of a cluster: topics, groups, users and lists, read as a whole and applied."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from console.gateway.brokers.listing import no_broker
from console.gateway.engine.answers import Partial
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import ClusterSession
from core_broker.definitions import cluster
from core_broker.definitions.cluster import (
    Brokers,
    Outcome,
    brokers_of,
    document_of,
    read_tables,
)
from core_broker.definitions.comparing import Item
from core_broker.definitions.model import Document

READ_DEADLINE_MS = 30_000
#: 5,000 objects on two brokers, with a millisecond for each request.
APPLY_DEADLINE_MS = 120_000

Outcomes = Mapping[tuple[str, str], tuple[Outcome, ...]]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The definitions in force, and the names of the masters."""

    document: Document
    brokers: tuple[str, ...]


@question(fresh_for_ms=0, deadline_ms=READ_DEADLINE_MS)
async def definitions(session: ClusterSession) -> Partial[Gathered]:
    """The definitions of the cluster; an error when a master does not answer.

    Each question asks the brokers. The document is shared while their answers stay the same: the
    caller must not change the document.
    """
    brokers = await _brokers(session)
    tables = await read_tables(session.admin, brokers)
    return Partial(Gathered(session.derived("definitions", tables, document_of), brokers.names))


@command(deadline_ms=APPLY_DEADLINE_MS)
async def apply_items(session: ClusterSession, items: Iterable[Item]) -> Outcomes:
    """Apply the items with differences; outcomes by kind and name."""
    return await cluster.apply(session.admin, await _brokers(session), items)


async def _brokers(session: ClusterSession) -> Brokers:
    brokers = brokers_of(await session.admin.cluster_info())
    if not brokers.names:
        raise no_broker(session)
    return brokers
