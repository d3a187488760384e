"""Commands that create, edit and delete groups, and the question of a deletion's impact."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import ask_masters, masters
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
from console.gateway.groups.listing import no_such_group
from console.gateway.groups.members import group_clients
from console.gateway.groups.progress import progress_of, queue_progress
from console.gateway.topics.changes import remove_topic
from console.gateway.topics.listing import topic_configs
from console.gateway.topics.metrics import topic_metrics
from core_broker.message.topics import dlq_topic, is_system_group, retry_topic
from core_broker.remoting.bodies import SubscriptionGroupConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The settable fields of a group; None keeps each broker's value."""

    consume_enable: bool | None = None
    consume_broadcast_enable: bool | None = None
    retry_max_times: int | None = None
    retry_queue_nums: int | None = None
    notify_consumer_ids_changed_enable: bool | None = None

    def on(self, config: SubscriptionGroupConfig) -> SubscriptionGroupConfig:
        """Return the configuration with the settings applied; other fields stay unchanged."""
        wanted = {field: getattr(self, field) for field in FIELDS}
        changes = {field: value for field, value in wanted.items() if value is not None}
        return msgspec.structs.replace(config, **changes)


FIELDS = (
    "consume_enable",
    "consume_broadcast_enable",
    "retry_max_times",
    "retry_queue_nums",
    "notify_consumer_ids_changed_enable",
)


@dataclass(frozen=True, slots=True)
class GroupImpact:
    """The objects that a deletion of the group affects; None means unknown.

    `topics` lacks the names that the reader does not see; `unseen_topics` counts these topics.
    """

    brokers: tuple[str, ...]
    clients: int
    topics: tuple[str, ...]
    lag: int | None
    retry_stored: int | None
    dead_letters: int | None
    unseen_topics: int = 0

    @property
    def topic_count(self) -> int:
        """The number of topics, also of topics whose names the reader does not see."""
        return len(self.topics) + self.unseen_topics


@question(fresh_for_ms=1_000)
async def group_impact(session: ClusterSession, group: str) -> Partial[GroupImpact]:
    """The clients, offsets, retries and dead letters that a deletion affects."""
    held, failures = await _held(session, group)
    clients = await session.ask(group_clients, group)
    queues = await session.ask(queue_progress, group)
    progress = progress_of(queues.value, ())
    return Partial(
        GroupImpact(
            brokers=tuple(sorted(ref.name for ref in held)),
            clients=len(clients.value.clients),
            topics=progress.topics if progress else (),
            lag=progress.lag if progress else None,
            retry_stored=await _stored(session, retry_topic(group)),
            dead_letters=await _stored(session, dlq_topic(group)),
        ),
        merge_failures(failures, clients.failures, queues.failures),
    )


@command()
async def create_group(
    session: ClusterSession,
    name: str,
    settings: GroupSettings,
    brokers: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
) -> tuple[BrokerOutcome, ...]:
    """Create the group on the named brokers (default: all); AlreadyExists when it exists there.

    With `dry_run`, the command only checks, and returns the brokers that would get the group.
    """
    held, _failures = await _held(session, name, missing_ok=True)
    refs = brokers_for_new(
        await masters(session),
        brokers,
        held,
        lambda names: format_lazy(
            _("The group “{group}” is already on {brokers}."), group=name, brokers=names
        ),
    )
    if dry_run:
        return outcomes(refs, ())
    config = new_config(name, settings)
    return await apply_change(
        session, refs, lambda ref: session.admin.create_group(ref.addr, config)
    )


@command()
async def update_group(
    session: ClusterSession,
    name: str,
    settings: GroupSettings,
    brokers: Sequence[str] | None = None,
    expected_etag: str | None = None,
) -> tuple[BrokerOutcome, ...]:
    """Change the group on the named brokers (default: brokers with the group)."""
    held, _failures = await _held(session, name)
    check_unchanged(expected_etag, etag_of(held.items()))
    refs = brokers_named(list(held), brokers)
    return await apply_change(
        session, refs, lambda ref: session.admin.create_group(ref.addr, settings.on(held[ref]))
    )


@command()
async def delete_group(
    session: ClusterSession,
    name: str,
    *,
    dead_letters: bool = False,
    expected_etag: str | None = None,
    dry_run: bool = False,
) -> tuple[BrokerOutcome, ...]:
    """Delete the group with offsets and retry topic; with `dead_letters` also the DLQ topic.

    With `dry_run`, the command only checks, and returns the brokers that have the group.
    """
    held, _failures = await _held(session, name)
    check_unchanged(expected_etag, etag_of(held.items()))
    if is_system_group(name):
        raise NotAllowedNow(
            format_lazy(_("“{group}” is a group of the system itself."), group=name)
        )
    if dry_run:
        return outcomes(held, ())
    results = await apply_change(
        session, held, lambda ref: session.admin.delete_group(ref.addr, name)
    )
    topics = [retry_topic(name), *([dlq_topic(name)] if dead_letters else [])]
    configs = (await session.ask(topic_configs)).value
    for topic in topics:
        refs = [ref for ref, table in configs.items() if topic in table]
        if refs:
            results = merge_outcomes(results, await remove_topic(session, topic, refs))
    return results


def merge_outcomes(
    first: Sequence[BrokerOutcome], second: Sequence[BrokerOutcome]
) -> tuple[BrokerOutcome, ...]:
    """Merge outcomes by broker; the first error of a broker wins."""
    merged = {outcome.addr: outcome for outcome in first}
    for outcome in second:
        before = merged.get(outcome.addr)
        if before is None or before.error is None:
            merged[outcome.addr] = outcome
    return tuple(merged.values())


def new_config(name: str, settings: GroupSettings) -> SubscriptionGroupConfig:
    """Return the configuration of a new group: the settings over the defaults."""
    return settings.on(SubscriptionGroupConfig(group_name=name))


def differences(
    held: Sequence[tuple[BrokerRef, SubscriptionGroupConfig]], settings: GroupSettings
) -> tuple[FieldChange, ...]:
    """Return the changed fields by broker; empty when nothing changes."""
    return field_changes(held, settings, FIELDS)


async def _stored(session: ClusterSession, topic: str) -> int | None:
    """Return the number of messages in a topic; 0 when no broker has the topic."""
    configs = await session.ask(topic_configs)
    if not any(topic in table for table in configs.value.values()):
        return None if configs.failures else 0
    return (await session.ask(topic_metrics, topic)).value.stored


async def _held(
    session: ClusterSession, name: str, *, missing_ok: bool = False
) -> tuple[dict[BrokerRef, SubscriptionGroupConfig], tuple[BrokerFailure, ...]]:
    """Return the group's current settings by broker, not from the cache."""
    tables, failures = await ask_masters(
        session, lambda ref: session.admin.group_configs(ref.addr), keep=("group_configs",)
    )
    held = {ref: table[name] for ref, table in tables.items() if name in table}
    if not held and not missing_ok:
        raise no_such_group(name, failures)
    return held, failures
