"""The question behind the search box: the names of everything a cluster has."""

from collections.abc import Iterable
from dataclasses import dataclass

from console.gateway.brokers.listing import broker_refs
from console.gateway.engine.answers import Partial, merge_failures
from console.gateway.engine.questions import question
from console.gateway.engine.session import ClusterSession
from console.gateway.groups.listing import group_configs
from console.gateway.topics.listing import topic_configs

NAMES_FRESH_MS = 5_000


@dataclass(frozen=True, slots=True)
class Names:
    """All names, each once, in order."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]
    brokers: tuple[str, ...]


@question(fresh_for_ms=NAMES_FRESH_MS)
async def names(session: ClusterSession) -> Partial[Names]:
    """What a search looks through; kept a few seconds, for people type letter by letter."""
    topics, groups = await session.ask(topic_configs), await session.ask(group_configs)
    found = Names(
        topics=_names(topics.value.values()),
        groups=_names(groups.value.values()),
        brokers=tuple(sorted({ref.name for ref in await broker_refs(session)})),
    )
    return Partial(found, merge_failures(topics.failures, groups.failures))


def _names(tables: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted({name for table in tables for name in table}))
