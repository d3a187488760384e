"""The definitions of a cluster: topics, groups, users and lists, read as a whole and applied."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from console.gateway.brokers.listing import no_broker
from console.gateway.engine.answers import Partial
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import ClusterSession
from core_broker.definitions import cluster
from core_broker.definitions.cluster import (
    Brokers,
    Outcome,
    Tables,
    brokers_of,
    document_of,
    read_tables,
)
from core_broker.definitions.comparing import Item
from core_broker.definitions.model import Document
from core_broker.definitions.writing import ObjectTexts, object_texts

READ_DEADLINE_MS = 30_000
#: 5,000 objects on two brokers, with a millisecond for each request.
APPLY_DEADLINE_MS = 120_000

Outcomes = Mapping[tuple[str, str], tuple[Outcome, ...]]


@dataclass(frozen=True)  # without slots, for the texts
class Gathered:
    """The definitions in force, and the names of the masters. Without secrets."""

    document: Document
    brokers: tuple[str, ...]

    @cached_property
    def texts(self) -> ObjectTexts:
        """The texts of the objects. To write 20,000 objects takes 200 ms, so exports share them."""
        return object_texts(self.document)


@question(fresh_for_ms=0, deadline_ms=READ_DEADLINE_MS)
async def definitions(session: ClusterSession) -> Partial[Gathered]:
    """The definitions of the cluster; an error when a master does not answer.

    Each question asks the brokers. The result is shared while their answers stay the same: the
    caller must not change the document.
    """
    tables = await read_tables(session.admin, await _brokers(session))
    return Partial(session.derived("definitions", tables, _gathered))


@command(deadline_ms=APPLY_DEADLINE_MS)
async def apply_items(session: ClusterSession, items: Iterable[Item]) -> Outcomes:
    """Apply the items with differences; outcomes by kind and name."""
    return await cluster.apply(session.admin, await _brokers(session), items)


def _gathered(tables: Tables) -> Gathered:
    return Gathered(document_of(tables), tables.brokers.names)


async def _brokers(session: ClusterSession) -> Brokers:
    brokers = brokers_of(await session.admin.cluster_info())
    if not brokers.names:
        raise no_broker(session)
    return brokers
