"""Questions about replica sets.

Slaves are asked before masters, so that the lag of a slave is an upper bound. Brokers and
controllers of other versions may refuse single requests; such values are unknown.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from console.gateway.brokers.listing import cluster_map
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures, now_ms
from console.gateway.engine.known_brokers import KnownBroker
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.replicas.building import Answers, Member, build_set, members_of
from console.gateway.replicas.controllers import controller_groups, reasons_by_addr
from console.gateway.replicas.model import (
    CONTROLLER,
    ControllerGroup,
    Epoch,
    Replica,
    ReplicaSet,
    ReplicaSets,
)
from core_broker.errors import GantryError
from core_broker.remoting.bodies.replicas import ReplicasEntry

#: Maximum number of slaves whose lag in time is measured, with one request each.
LAGS_MEASURED_MAX: Final = 32
#: Number of the newest epochs of a set whose beginning is looked up.
BEGINS_ASKED_MAX: Final = 5
#: Freshness of the time of an epoch's first message, ms: the time never changes, an epoch without a
#: message gets one.
BEGIN_FRESH_MS: Final = 10_000


@question(fresh_for_ms=1_000)
async def replica_sets(session: ClusterSession) -> Partial[ReplicaSets]:
    """All broker names with role, log end, lag and epochs of each process, and the controllers.

    Failures name brokers and controllers without an answer.
    """
    listed = await session.ask(cluster_map)
    groups = await session.ask(controller_groups)
    entries, entry_failures = await _entries(session, groups.value)
    known: dict[str, list[KnownBroker]] = {}
    for broker in session.known.all():
        known.setdefault(broker.ref.name, []).append(broker)
    in_mode = {name for group in groups.value for name in group.broker_names}
    members = {
        name: members_of(name, of_name, entries.get(name)) for name, of_name in known.items()
    }
    answers, failures = await _answers(session, members, in_mode)
    sets = [
        build_set(
            name,
            known[name][0].cluster_name,
            of_name,
            entries.get(name),
            answers,
            has_controllers=name in in_mode,
        )
        for name, of_name in sorted(members.items())
    ]
    return Partial(
        ReplicaSets(groups.value, tuple(sets)),
        merge_failures(listed.failures, groups.failures, entry_failures, failures),
    )


@question(fresh_for_ms=1_000)
async def timed_replica_sets(session: ClusterSession) -> Partial[ReplicaSets]:
    """The replica sets with the lag in time, and the time of the first message of epochs.

    Both times are store times of messages in the master's log.
    """
    answer = await session.ask(replica_sets)
    budget = LAGS_MEASURED_MAX
    timed = []
    for each in answer.value.sets:
        behind = [one.addr for one in each.replicas if one.lag_bytes][:budget]
        budget -= len(behind)
        timed.append(_timed(session, each, behind))
    sets = tuple(await asyncio.gather(*timed))
    return Partial(replace(answer.value, sets=sets), answer.failures)


@question(fresh_for_ms=BEGIN_FRESH_MS)
async def epoch_begin(session: ClusterSession, addr: str, offset: int) -> Partial[int | None]:
    """The store time of the message at the beginning of an epoch; None without the message."""
    return Partial(await _stored_ms(session, addr, offset))


async def _entries(
    session: ClusterSession, groups: Sequence[ControllerGroup]
) -> tuple[dict[str, ReplicasEntry], tuple[BrokerFailure, ...]]:
    """Return what the leading controllers know about the sets of their groups."""
    leaders: dict[BrokerRef, tuple[str, ...]] = {}
    for group in groups:
        if group.leader is not None:
            ref = BrokerRef(CONTROLLER, 0, group.leader.addr)
            leaders[ref] = (*leaders.get(ref, ()), *group.broker_names)
    found, failures = await session.fan_out(
        leaders,
        lambda ref: session.admin.sync_state_sets([ref.addr], leaders[ref]),
        one_must_answer=False,
    )
    entries: dict[str, ReplicasEntry] = {}
    for ref, info in found.items():
        table = info.replicas_info_table
        entries |= {name: table[name] for name in leaders[ref] if name in table}
    return entries, failures


async def _answers(
    session: ClusterSession, members: Mapping[str, Sequence[Member]], in_mode: set[str]
) -> tuple[Answers, tuple[BrokerFailure, ...]]:
    every = [one for of_name in members.values() for one in of_name]
    slaves = [one.ref for one in every if one.role != "master"]
    masters = [one.ref for one in every if one.role == "master"]
    runtimes: dict[str, Mapping[str, str]] = {}
    failures: tuple[BrokerFailure, ...] = ()
    for refs in (slaves, masters):
        found, failed = await session.fan_out(
            refs, lambda ref: session.admin.runtime_info(ref.addr), one_must_answer=False
        )
        runtimes |= {ref.addr: table for ref, table in found.items()}
        failures = merge_failures(failures, failed)
    replicated = [ref for ref in masters if len(members[ref.name]) > 1]
    ha, _refused = await session.fan_out(
        replicated, lambda ref: session.admin.ha_status(ref.addr), one_must_answer=False
    )
    switching = [one.ref for one in every if one.ref.name in in_mode]
    epochs, _refused = await session.fan_out(
        switching, lambda ref: session.admin.epochs(ref.addr), one_must_answer=False
    )
    answers = Answers(
        runtimes,
        {ref.addr: status for ref, status in ha.items()},
        {ref.addr: found for ref, found in epochs.items()},
        reasons_by_addr(failures),
        {failure.addr for failure in failures if failure.kind == "unreachable"},
    )
    return answers, failures


async def _timed(session: ClusterSession, found: ReplicaSet, behind: Sequence[str]) -> ReplicaSet:
    master = found.master
    if master is None or master.state == "down":
        return found
    begins = {}
    for epoch in (master.epochs or ())[-BEGINS_ASKED_MAX:]:
        answer = await session.ask(epoch_begin, master.addr, epoch.start_offset)
        begins[epoch.number, epoch.start_offset] = answer.value

    def with_times(epochs: tuple[Epoch, ...] | None) -> tuple[Epoch, ...] | None:
        return epochs and tuple(
            replace(each, began_ms=begins.get((each.number, each.start_offset))) for each in epochs
        )

    async def timed(one: Replica) -> Replica:
        lag_ms = 0 if one.lag_bytes == 0 else None
        if one.addr in behind and one.end_offset is not None:
            stored_ms = await _stored_ms(session, master.addr, one.end_offset)
            lag_ms = None if stored_ms is None else max(0, now_ms() - stored_ms)
        return replace(one, lag_ms=lag_ms, epochs=with_times(one.epochs))

    replicas = await asyncio.gather(*(timed(one) for one in found.replicas))
    return replace(found, replicas=tuple(replicas))


async def _stored_ms(session: ClusterSession, addr: str, offset: int) -> int | None:
    """Return the store time of the message at an offset; None: no message begins there."""
    try:
        message = await session.admin.view_message(addr, offset)
    except GantryError:
        return None
    return message.store_timestamp
