"""Changes to topics: create, edit per broker, delete with its impact shown before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import cluster_map, masters
from console.gateway.changes import (
    BrokerOutcome,
    FieldChange,
    apply_change,
    brokers_named,
    check_unchanged,
    etag_of,
    outcomes,
)
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import AlreadyThere, NotAllowedNow
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.members import group_clients
from console.gateway.metrics import sum_known
from console.gateway.topics.listing import no_such_topic, own_names, topic_kind
from console.gateway.topics.metrics import TopicMetrics, topic_metrics_with_lags
from core_broker.remoting.bodies import TopicConfig

QUEUES_MAX = 1_024
#: RocketMQ's names of what can be set, and ours.
SETTINGS = {
    "perm": "perm",
    "write_queue_nums": "write_queues",
    "read_queue_nums": "read_queues",
    "order": "order",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """What can be set on a topic; None leaves it as it is on each broker."""

    read_queues: int | None = None
    write_queues: int | None = None
    perm: int | None = None
    order: bool | None = None

    def on(self, config: TopicConfig) -> TopicConfig:
        """The configuration with these settings; everything else stays."""
        return TopicConfig(
            topic_name=config.topic_name,
            read_queue_nums=_or(self.read_queues, config.read_queue_nums),
            write_queue_nums=_or(self.write_queues, config.write_queue_nums),
            perm=_or(self.perm, config.perm),
            topic_filter_type=config.topic_filter_type,
            topic_sys_flag=config.topic_sys_flag,
            order=config.order if self.order is None else self.order,
            attributes=config.attributes,
        )


@dataclass(frozen=True, slots=True)
class TopicImpact:
    """What would go with a topic."""

    numbers: TopicMetrics
    brokers: tuple[str, ...]
    queues: int
    online_groups: tuple[tuple[str, int], ...]
    lag: int | None

    @property
    def clients(self) -> int:
        return sum(count for _group, count in self.online_groups)


@question(fresh_for_ms=1_000)
async def topic_impact(session: ClusterSession, topic: str) -> Partial[TopicImpact]:
    """Messages, queues, groups and connected clients that a deletion would hit."""
    held, failures = await _held(session, topic)
    numbers = await session.ask(topic_metrics_with_lags, topic)
    online, more = [], [failures, numbers.failures]
    for group in numbers.value.groups:
        answer = await session.ask(group_clients, group)
        more.append(answer.failures)
        if answer.value.online:
            online.append((group, len(answer.value.clients)))
    return Partial(
        TopicImpact(
            numbers.value,
            tuple(sorted(ref.name for ref in held)),
            sum(max(c.read_queue_nums, c.write_queue_nums) for c in held.values()),
            tuple(online),
            sum_known(numbers.value.lags.values()),
        ),
        merge_failures(*more),
    )


@command()
async def create_topic(
    session: ClusterSession,
    name: str,
    settings: TopicSettings,
    brokers: Sequence[str] | None = None,
) -> tuple[BrokerOutcome, ...]:
    """Create the topic on the named brokers, or on all; AlreadyThere when one of them has it."""
    refs = brokers_named(await masters(session), brokers)
    if not refs:
        raise NotAllowedNow(_("No broker is registered, so there is nowhere to create it."))
    held, _failures = await _held(session, name, missing_ok=True)
    taken = [ref.name for ref in refs if ref in held]
    if taken:
        raise AlreadyThere(
            format_lazy(
                _("The topic “{topic}” is already on {brokers}."),
                topic=name,
                brokers=", ".join(taken),
            )
        )
    config = settings.on(TopicConfig(topic_name=name, read_queue_nums=8, write_queue_nums=8))
    return await apply_change(
        session, refs, lambda ref: session.admin.create_topic(ref.addr, config)
    )


@command()
async def update_topic(
    session: ClusterSession,
    name: str,
    settings: TopicSettings,
    brokers: Sequence[str] | None = None,
    expected_etag: str | None = None,
) -> tuple[BrokerOutcome, ...]:
    """Change the topic on the named brokers, or on all that have it."""
    held, _failures = await _held(session, name)
    check_unchanged(expected_etag, etag_of(held.items()))
    refs = brokers_named(list(held), brokers)
    return await apply_change(
        session, refs, lambda ref: session.admin.create_topic(ref.addr, settings.on(held[ref]))
    )


@command()
async def delete_topic(
    session: ClusterSession, name: str, expected_etag: str | None = None
) -> tuple[BrokerOutcome, ...]:
    """Delete the topic on every broker that has it, and then its route."""
    held, _failures = await _held(session, name)
    check_unchanged(expected_etag, etag_of(held.items()))
    own = own_names((await session.ask(cluster_map)).value)
    if topic_kind(name, held.values(), own) == "system":
        raise NotAllowedNow(
            format_lazy(_("“{topic}” is a topic of the system itself."), topic=name),
            hint=_("Brokers cannot work without it, and would make it again."),
        )
    return await remove_topic(session, name, list(held))


async def remove_topic(
    session: ClusterSession, name: str, refs: Sequence[BrokerRef]
) -> tuple[BrokerOutcome, ...]:
    """Brokers first: as long as one has the topic, it would register the route again."""
    _done, failures = await session.fan_out(
        refs, lambda ref: session.admin.delete_topic_in_broker(ref.addr, name)
    )
    if not failures:
        await session.admin.delete_topic_in_namesrv(name)
    return outcomes(refs, failures)


def differences(
    held: Sequence[tuple[BrokerRef, TopicConfig]], settings: TopicSettings
) -> tuple[FieldChange, ...]:
    """What the settings would change, line by line; empty when nothing would."""
    changes = []
    for ref, config in held:
        after = settings.on(config)
        for field in SETTINGS:
            old, new = getattr(config, field), getattr(after, field)
            if old != new:
                changes.append(FieldChange(ref.name, field, old, new))
    return tuple(changes)


def settings_of(config: TopicConfig) -> dict[str, Any]:
    """What can be set, by RocketMQ's names."""
    return {field: getattr(config, field) for field in SETTINGS}


def settings_from(fields: Mapping[str, Any]) -> TopicSettings:
    """Settings by RocketMQ's names; those that are absent stay as they are."""
    return TopicSettings(**{SETTINGS[field]: value for field, value in fields.items()})


async def _held(
    session: ClusterSession, name: str, *, missing_ok: bool = False
) -> tuple[dict[BrokerRef, TopicConfig], tuple[BrokerFailure, ...]]:
    """The topic's configuration on each broker that has it, read now."""
    tables, failures = await session.fan_out(
        await masters(session), lambda ref: session.admin.topic_configs(ref.addr)
    )
    held = {ref: table[name] for ref, table in tables.items() if name in table}
    if not held and not missing_ok:
        raise no_such_topic(name, failures)
    return held, failures


def _or(wanted: int | None, present: int) -> int:
    return present if wanted is None else wanted
