"""The question of the search box: all topic, group and broker names of a cluster."""

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
    """All names, sorted, without duplicates."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]
    brokers: tuple[str, ...]


@question(fresh_for_ms=NAMES_FRESH_MS)
async def names(session: ClusterSession) -> Partial[Names]:
    """All names. The answer stays fresh for seconds, because each keystroke asks."""
    topics, groups = await session.ask(topic_configs), await session.ask(group_configs)
    found = Names(
        topics=_names(topics.value.values()),
        groups=_names(groups.value.values()),
        brokers=tuple(sorted({ref.name for ref in await broker_refs(session)})),
    )
    return Partial(found, merge_failures(topics.failures, groups.failures))


def _names(tables: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted({name for table in tables for name in table}))
