"""Objects that each broker process has for itself: brokers do not replicate users and accounts.

The processes of a broker name follow the master: a change goes to all of them.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import broker_refs
from console.gateway.changes import BrokerOutcome
from console.gateway.engine.answers import BrokerFailure
from console.gateway.engine.errors import NotAllowedNow
from console.gateway.engine.session import BrokerRef, ClusterSession

T = TypeVar("T")


class NoAccessControl(NotAllowedNow):
    """The brokers have no access control of the requested generation."""

    kind = "no-access-control"
    title = _("Access control is off")


@dataclass(frozen=True, slots=True)
class Spread:
    """The processes with an object, and the processes that answered without the object."""

    brokers: tuple[str, ...]
    missing_on: tuple[str, ...]
    #: Processes differ, or a process has no such object.
    drift: bool


def label(ref: BrokerRef) -> str:
    """The name of a process: the broker's name, for a slave with the broker id."""
    return ref.name if ref.is_master else f"{ref.name}:{ref.id}"


def held(tables: Mapping[BrokerRef, Mapping[str, T]], name: str) -> tuple[tuple[BrokerRef, T], ...]:
    """The object on each process that has the object, in order of broker name and id."""
    return tuple((ref, tables[ref][name]) for ref in sorted(tables) if name in tables[ref])


def leading(
    tables: Mapping[BrokerRef, Mapping[str, T]], name: str
) -> tuple[tuple[BrokerRef, T], ...]:
    """The object on the process with the lowest id of each broker name that has the object."""
    first: dict[str, tuple[BrokerRef, T]] = {}
    for ref, config in held(tables, name):
        first.setdefault(ref.name, (ref, config))
    return tuple(first.values())


def spread_of(tables: Mapping[BrokerRef, Mapping[str, T]], name: str) -> Spread:
    configs = held(tables, name)
    missing = tuple(label(ref) for ref in sorted(tables) if name not in tables[ref])
    differs = any(config != configs[0][1] for _ref, config in configs)
    return Spread(tuple(label(ref) for ref, _config in configs), missing, bool(missing) or differs)


async def processes_of(session: ClusterSession, refs: Iterable[BrokerRef]) -> list[BrokerRef]:
    """All processes of the broker names, masters first."""
    names = {ref.name for ref in refs}
    found = [ref for ref in await broker_refs(session) if ref.name in names]
    return sorted(found, key=lambda ref: (ref.id, ref.name))


async def unreachable(
    session: ClusterSession, targets: Iterable[BrokerRef], failures: Iterable[BrokerFailure]
) -> list[BrokerRef]:
    """The further processes that do not answer: their last answer may be older than the object."""
    lost = {failure.addr for failure in failures if failure.kind == "unreachable"}
    lost -= {ref.addr for ref in targets}
    return [ref for ref in await broker_refs(session) if ref.addr in lost]


async def change_held(
    session: ClusterSession,
    targets: Sequence[BrokerRef],
    present: Mapping[BrokerRef, T],
    failures: Iterable[BrokerFailure],
    change: Callable[[BrokerRef, T], Awaitable[None]],
    missing: str,
) -> tuple[BrokerOutcome, ...]:
    """Change the object on the processes that have the object; the others get an error, `missing`
    or the reason of their failure."""
    reasons = {failure.addr: failure.reason for failure in failures}
    having = [ref for ref in targets if ref in present]
    without = [
        BrokerOutcome(label(ref), ref.addr, reasons.get(ref.addr, missing))
        for ref in targets
        if ref not in present
    ]
    done = await change_each(session, having, lambda ref: change(ref, present[ref]))
    return (*done, *without)


async def change_each(
    session: ClusterSession,
    refs: Sequence[BrokerRef],
    change: Callable[[BrokerRef], Awaitable[None]],
) -> tuple[BrokerOutcome, ...]:
    """Change every process; one outcome per process."""
    _done, failures = await session.fan_out(refs, change)
    reasons = {failure.addr: failure.reason for failure in failures}
    return tuple(BrokerOutcome(label(ref), ref.addr, reasons.get(ref.addr)) for ref in refs)


def unchanged(refs: Iterable[BrokerRef]) -> tuple[BrokerOutcome, ...]:
    """The outcomes of a dry run."""
    return tuple(BrokerOutcome(label(ref), ref.addr, None) for ref in refs)


def check_not_signer(session: ClusterSession, name: str, hint: Any) -> None:
    """Raise NotAllowedNow for the account of the console: the console would lose its access."""
    if session.signed_as == name:
        raise NotAllowedNow(
            format_lazy(_("The console signs its requests as “{name}”."), name=name), hint=hint
        )
