"""Commands that create, edit and delete topics, and the question of a deletion's impact."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import ask_masters, known_map, masters
from console.gateway.changes import (
    BrokerOutcome,
    FieldChange,
    apply_change,
    brokers_for_new,
    brokers_named,
    check_unchanged,
    etag_of,
    field_changes,
    outcomes,
)
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import NotAllowedNow
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.members import group_clients
from console.gateway.metrics import sum_known
from console.gateway.topics.listing import no_such_topic, own_names, topic_kind
from console.gateway.topics.metrics import TopicMetrics, topic_metrics_with_lags
from console.gateway.topics.queue_safety import check_new_queues, check_queues
from core_broker.remoting.bodies import TopicConfig

QUEUES_MAX = 1_024
#: Settable fields: RocketMQ's names and the console's.
SETTINGS = {
    "perm": "perm",
    "write_queue_nums": "write_queues",
    "read_queue_nums": "read_queues",
    "order": "order",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """The settable fields of a topic; None keeps each broker's value."""

    read_queues: int | None = None
    write_queues: int | None = None
    perm: int | None = None
    order: bool | None = None

    def on(self, config: TopicConfig) -> TopicConfig:
        """Return the configuration with the settings applied; other fields stay unchanged."""
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
    """The objects that a deletion of the topic affects."""

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
    """The messages, queues, groups and connected clients that a deletion affects."""
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
    *,
    dry_run: bool = False,
    confirm_unread_queues: bool = False,
) -> tuple[BrokerOutcome, ...]:
    """Create the topic on the named brokers (default: all); AlreadyExists when it exists there.

    With `dry_run`, the command only checks, and returns the brokers that would get the topic.
    Without `confirm_unread_queues`, more write queues than read queues raise UnreadQueuesAhead.
    """
    held, _failures = await _held(session, name, missing_ok=True)
    refs = brokers_for_new(
        await masters(session),
        brokers,
        held,
        lambda names: format_lazy(
            _("The topic “{topic}” is already on {brokers}."), topic=name, brokers=names
        ),
    )
    if dry_run:
        return outcomes(refs, ())
    config = new_config(name, settings)
    if not confirm_unread_queues:
        check_new_queues(name, [ref.name for ref in refs], config)
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
    *,
    confirm_unread_queues: bool = False,
) -> tuple[BrokerOutcome, ...]:
    """Change the topic on the named brokers (default: brokers with the topic).

    Without `confirm_unread_queues`, a change that leaves queues which no consumer reads raises
    UnreadQueuesAhead.
    """
    held, _failures = await _held(session, name)
    check_unchanged(expected_etag, etag_of(held.items()))
    refs = brokers_named(list(held), brokers)
    if not confirm_unread_queues:
        await check_queues(session, name, [(ref, held[ref]) for ref in refs], settings)
    return await apply_change(
        session, refs, lambda ref: session.admin.create_topic(ref.addr, settings.on(held[ref]))
    )


@command()
async def delete_topic(
    session: ClusterSession,
    name: str,
    expected_etag: str | None = None,
    *,
    dry_run: bool = False,
) -> tuple[BrokerOutcome, ...]:
    """Delete the topic on the brokers, then the route on the name servers.

    With `dry_run`, the command only checks, and returns the brokers that have the topic.
    """
    held, _failures = await _held(session, name)
    check_unchanged(expected_etag, etag_of(held.items()))
    own = own_names(await known_map(session))
    if topic_kind(name, held.values(), own) == "system":
        raise NotAllowedNow(
            format_lazy(_("“{topic}” is a topic of the system itself."), topic=name),
            hint=_("Brokers cannot work without it, and would make it again."),
        )
    if dry_run:
        return outcomes(held, ())
    return await remove_topic(session, name, list(held))


async def remove_topic(
    session: ClusterSession, name: str, refs: Sequence[BrokerRef]
) -> tuple[BrokerOutcome, ...]:
    """Delete the topic on brokers first: a broker with the topic would register the route again."""
    _done, failures = await session.fan_out(
        refs, lambda ref: session.admin.delete_topic_in_broker(ref.addr, name)
    )
    if not failures:
        await session.admin.delete_topic_in_namesrv(name)
    return outcomes(refs, failures)


def new_config(name: str, settings: TopicSettings) -> TopicConfig:
    """Return the configuration of a new topic: the settings over the defaults."""
    return settings.on(TopicConfig(topic_name=name, read_queue_nums=8, write_queue_nums=8))


def differences(
    held: Sequence[tuple[BrokerRef, TopicConfig]], settings: TopicSettings
) -> tuple[FieldChange, ...]:
    """Return the changed fields by broker; empty when nothing changes."""
    return field_changes(held, settings, SETTINGS)


def settings_of(config: TopicConfig) -> dict[str, Any]:
    """Return the settable fields under RocketMQ's names."""
    return {field: getattr(config, field) for field in SETTINGS}


def settings_from(fields: Mapping[str, Any]) -> TopicSettings:
    """Return settings from RocketMQ's names; absent fields keep their values."""
    return TopicSettings(**{SETTINGS[field]: value for field, value in fields.items()})


async def _held(
    session: ClusterSession, name: str, *, missing_ok: bool = False
) -> tuple[dict[BrokerRef, TopicConfig], tuple[BrokerFailure, ...]]:
    """Return the topic's current configuration by broker, not from the cache.

    A broker that is down has its last configuration: the change fails there, and is not forgotten.
    """
    tables, failures = await ask_masters(
        session, lambda ref: session.admin.topic_configs(ref.addr), keep=("topic_configs",)
    )
    held = {ref: table[name] for ref, table in tables.items() if name in table}
    if not held and not missing_ok:
        raise no_such_topic(name, failures)
    return held, failures


def _or(wanted: int | None, present: int) -> int:
    return present if wanted is None else wanted
