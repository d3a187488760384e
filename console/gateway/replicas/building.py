"""Answers of brokers and controllers become replica sets. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from console.gateway.brokers import runtime
from console.gateway.engine.known_brokers import BrokerRef, KnownBroker
from console.gateway.replicas.model import (
    Epoch,
    Mode,
    Replica,
    ReplicaSet,
    ReplicaState,
    Role,
)
from core_broker.remoting.bodies import HARuntimeInfo
from core_broker.remoting.bodies.replicas import EpochEntryCache, ReplicasEntry

#: Maximum number of processes of a set.
REPLICAS_MAX: Final = 64
#: Number of the newest epochs that are kept.
EPOCHS_KEPT_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a set before its own answers."""

    ref: BrokerRef
    number: int | None
    role: Role
    is_alive: bool | None
    is_in_sync: bool | None
    is_registered: bool


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of the processes by address, and the reasons of missing ones."""

    runtimes: Mapping[str, Mapping[str, str]]
    ha: Mapping[str, HARuntimeInfo]
    epochs: Mapping[str, EpochEntryCache]
    reasons: Mapping[str, str]
    down: Collection[str]


def members_of(
    name: str, known: Iterable[KnownBroker], entry: ReplicasEntry | None
) -> tuple[Member, ...]:
    """Return the processes of a set, the master first.

    The controllers decide about the roles; without their answer, the broker id does.
    """
    if entry is None:
        plain = [
            Member(
                one.ref,
                one.ref.id,
                "master" if one.ref.is_master else "slave",
                None,
                None,
                one.registered,
            )
            for one in known
        ]
        return _ordered(plain)
    by_addr = {one.ref.addr: one for one in known}
    members = []
    seen = set()
    for is_in_sync, replicas in (
        (True, entry.in_sync_replicas),
        (False, entry.not_in_sync_replicas),
    ):
        for each in replicas[:REPLICAS_MAX]:
            addr, number = each.broker_address, each.broker_id
            listed = by_addr.get(addr)
            is_master = number == entry.master_broker_id
            ref = listed.ref if listed is not None else BrokerRef(name, number, addr)
            members.append(
                Member(
                    ref,
                    number,
                    "master" if is_master else "slave",
                    each.alive,
                    is_in_sync,
                    listed is not None and listed.registered,
                )
            )
            seen.add(addr)
    # Processes that the controllers do not know, for example under their address of before.
    members += [
        Member(one.ref, None, "unknown", None, False, one.registered)
        for addr, one in by_addr.items()
        if addr not in seen
    ]
    return _ordered(members)


def build_set(
    name: str,
    cluster_name: str,
    members: Sequence[Member],
    entry: ReplicasEntry | None,
    answers: Answers,
    *,
    has_controllers: bool,
) -> ReplicaSet:
    """Return a replica set from its members and their answers."""
    mode: Mode = "single" if len(members) == 1 else "fixed"
    master = next((one for one in members if one.role == "master"), None)
    end = None if master is None else _end_offset(answers, master.ref.addr)
    ha = None if master is None else answers.ha.get(master.ref.addr)
    replicas = tuple(_replica(member, answers, end) for member in members)
    acks = [] if ha is None else [each.slave_ack_offset for each in ha.ha_connection_info]
    in_sync = sum(1 for one in members if one.is_in_sync)
    return ReplicaSet(
        name,
        cluster_name,
        "controllers" if has_controllers else mode,
        replicas,
        master_epoch=None if entry is None else entry.master_epoch,
        sync_state_set_epoch=None if entry is None else entry.sync_state_set_epoch,
        confirm_offset=None if entry is None else confirm_offset(end, acks, in_sync),
        connected=None if ha is None else len(acks),
        is_known=entry is not None,
    )


def confirm_offset(end: int | None, acks: Sequence[int], in_sync: int) -> int | None:
    """Return the end of the messages that the whole sync-state set has.

    Connections do not name their slaves: with further connections the offset is unknown.
    """
    if end is None or in_sync < 1:
        return None
    if in_sync == 1:
        return end
    return min(end, *acks) if len(acks) == in_sync - 1 else None


def _replica(member: Member, answers: Answers, master_end: int | None) -> Replica:
    addr = member.ref.addr
    table = answers.runtimes.get(addr, {})
    end = _end_offset(answers, addr)
    lag = None
    if member.role == "slave" and end is not None and master_end is not None:
        lag = max(0, master_end - end)
    state: ReplicaState = "up" if member.is_registered else "unregistered"
    return Replica(
        member.ref,
        member.number,
        member.role,
        "down" if addr in answers.down else state,
        answers.reasons.get(addr),
        runtime.version(table),
        runtime.whole(table, "bootTimestamp"),
        member.is_alive,
        member.is_in_sync,
        end,
        lag_bytes=lag,
        epochs=_epochs(answers.epochs.get(addr)),
    )


def _end_offset(answers: Answers, addr: str) -> int | None:
    return runtime.whole(answers.runtimes.get(addr, {}), "commitLogMaxOffset")


def _epochs(found: EpochEntryCache | None) -> tuple[Epoch, ...] | None:
    if found is None:
        return None
    newest = found.epoch_list[-EPOCHS_KEPT_MAX:]
    # The open end of the last epoch is the largest 64-bit number.
    return tuple(
        Epoch(each.epoch, each.start_offset, min(each.end_offset, found.max_offset))
        for each in newest
    )


def _ordered(members: Iterable[Member]) -> tuple[Member, ...]:
    every = sorted(
        members,
        key=lambda one: (one.role != "master", one.number is None, one.number or 0, one.ref.addr),
    )
    return tuple(every[:REPLICAS_MAX])
