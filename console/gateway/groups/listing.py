"""Questions about consumer groups: the list and the configuration."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import ask_masters
from console.gateway.engine.answers import BrokerFailure, Partial
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from core_broker.message.topics import is_system_group
from core_broker.remoting.bodies import SubscriptionGroupConfig

Configs = Mapping[BrokerRef, Mapping[str, SubscriptionGroupConfig]]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """The configuration of a group over all brokers."""

    name: str
    system: bool
    enabled: bool
    retry_max: int
    brokers: tuple[str, ...]
    drift: bool


@question(fresh_for_ms=2_000, costly=True)
async def group_configs(session: ClusterSession) -> Partial[Configs]:
    """The group table of each broker."""
    found, failures = await ask_masters(
        session, lambda ref: session.admin.group_configs(ref.addr), keep=("group_configs",)
    )
    # A C++ client that shuts down makes RocketMQ 4.9 create a group without a name.
    return Partial(
        {ref: {name: conf for name, conf in table.items() if name} for ref, table in found.items()},
        failures,
    )


@question(fresh_for_ms=2_000, costly=True)
async def group_rows(session: ClusterSession) -> Partial[tuple[GroupRow, ...]]:
    """All groups in order of name."""
    answer = await session.ask(group_configs)
    return Partial(session.derived("group_rows", answer.value, _rows), answer.failures)


def _rows(tables: Configs) -> tuple[GroupRow, ...]:
    held: dict[str, dict[str, SubscriptionGroupConfig]] = {}
    for ref, table in tables.items():
        for name, config in table.items():
            held.setdefault(name, {})[ref.name] = config
    rows = (group_row(name, found) for name, found in held.items())
    return tuple(sorted(rows, key=lambda row: row.name))


@question(fresh_for_ms=1_000)
async def group_settings(
    session: ClusterSession, group: str
) -> Partial[tuple[tuple[BrokerRef, SubscriptionGroupConfig], ...]]:
    """The group's settings by broker; NotFound when no broker has the group."""
    answer = await session.ask(group_configs)
    held = tuple((ref, table[group]) for ref, table in answer.value.items() if group in table)
    if not held:
        raise no_such_group(group, answer.failures)
    return Partial(held, answer.failures)


def no_such_group(group: str, failures: tuple[BrokerFailure, ...] = ()) -> NotFound:
    hint = _("A broker that did not answer may have it.") if failures else ""
    return NotFound(
        format_lazy(_("No broker of the cluster has a group “{group}”."), group=group),
        hint=hint,
        failures=failures,
    )


def group_row(name: str, configs: Mapping[str, SubscriptionGroupConfig]) -> GroupRow:
    """Merge the configurations of a group on several brokers."""
    first = next(iter(configs.values()))
    return GroupRow(
        name=name,
        system=is_system_group(name),
        enabled=all(config.consume_enable for config in configs.values()),
        retry_max=first.retry_max_times,
        brokers=tuple(sorted(configs)),
        drift=any(config != first for config in configs.values()),
    )
