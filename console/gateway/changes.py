"""Parts of commands that change brokers: outcomes by broker, etags, differences."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.answers import BrokerFailure
from console.gateway.engine.errors import (
    AlreadyExists,
    NotAllowedNow,
    NotFound,
    PreconditionFailed,
)
from console.gateway.engine.session import BrokerRef, ClusterSession

T = TypeVar("T")

ETAG_CHARS = 16


@dataclass(frozen=True, slots=True)
class BrokerOutcome:
    """The result of a change on one broker; `error` is None after success."""

    broker: str
    addr: str
    error: str | None


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field on one broker: the value before and after."""

    broker: str
    field: str
    before: Any
    after: Any


class Settings(Protocol[T]):
    """Settable fields of an object; unset fields keep each broker's value."""

    def on(self, config: T) -> T:
        """Return the configuration with the settings applied."""


async def apply_change(
    session: ClusterSession,
    brokers: Iterable[BrokerRef],
    change: Callable[[BrokerRef], Awaitable[None]],
) -> tuple[BrokerOutcome, ...]:
    """Change every broker; raise Refused or ClusterUnreachable when all brokers fail."""
    refs = list(brokers)
    _done, failures = await session.fan_out(refs, change)
    return outcomes(refs, failures)


def outcomes(
    refs: Iterable[BrokerRef], failures: Iterable[BrokerFailure]
) -> tuple[BrokerOutcome, ...]:
    reasons = {failure.addr: failure.reason for failure in failures}
    return tuple(BrokerOutcome(ref.name, ref.addr, reasons.get(ref.addr)) for ref in refs)


def brokers_named(refs: Sequence[BrokerRef], wanted: Sequence[str] | None) -> list[BrokerRef]:
    """Return the named brokers; without names, all brokers."""
    if not wanted:
        return list(refs)
    known = {ref.name: ref for ref in refs}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise NotFound(
            format_lazy(_("The cluster has no broker named {names}."), names=", ".join(missing)),
            hint=format_lazy(_("It has: {names}."), names=", ".join(known) or "—"),
        )
    return [known[name] for name in dict.fromkeys(wanted)]


def brokers_for_new(
    masters: Sequence[BrokerRef],
    wanted: Sequence[str] | None,
    held: Container[BrokerRef],
    taken_text: Callable[[str], Any],
) -> list[BrokerRef]:
    """Return the named masters, or all, for a new object.

    Raises NotAllowedNow without a broker, and AlreadyExists with `taken_text` of the names when
    some brokers have the object.
    """
    refs = brokers_named(masters, wanted)
    if not refs:
        raise NotAllowedNow(_("No broker is registered, so there is nowhere to create it."))
    taken = [ref.name for ref in refs if ref in held]
    if taken:
        raise AlreadyExists(taken_text(", ".join(taken)))
    return refs


def field_changes(
    held: Iterable[tuple[BrokerRef, T]], settings: Settings[T], fields: Iterable[str]
) -> tuple[FieldChange, ...]:
    """Return the changed fields by broker; empty when nothing changes."""
    names = tuple(fields)
    return tuple(
        FieldChange(ref.name, field, getattr(config, field), getattr(after, field))
        for ref, config in held
        for after in (settings.on(config),)
        for field in names
        if getattr(config, field) != getattr(after, field)
    )


def configs_on(
    held: Iterable[tuple[BrokerRef, T]], wanted: Sequence[str] | None
) -> list[tuple[BrokerRef, T]]:
    """Return the configurations on the named brokers; without names, on all brokers."""
    return [(ref, config) for ref, config in held if not wanted or ref.name in wanted]


def etag_of(configs: Iterable[tuple[BrokerRef, Any]]) -> str:
    """Return a digest of an object's configuration over all brokers."""
    # Replicas of a broker have one name, and change their ids and places.
    ordered = sorted(configs, key=lambda each: (each[0].name, each[0].id, each[0].addr))
    state = [(ref.name, msgspec.to_builtins(config)) for ref, config in ordered]
    text = json.dumps(state, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:ETAG_CHARS]


def states(configs: Iterable[tuple[BrokerRef, Any]]) -> dict[str, Any]:
    """Return an object's configuration by broker, in plain values for the audit list."""
    return {ref.name: msgspec.to_builtins(config) for ref, config in configs}


def states_with(configs: Iterable[tuple[BrokerRef, T]], settings: Settings[T]) -> dict[str, Any]:
    """Return what `states` returns once the settings are on all brokers."""
    return states((ref, settings.on(config)) for ref, config in configs)


def changed_values(
    before: Mapping[str, Mapping[str, Any]], lines: Iterable[FieldChange]
) -> dict[str, dict[str, Any]]:
    """Return values by field and broker with the changes applied, for the audit list."""
    after = {field: dict(values) for field, values in before.items()}
    for line in lines:
        after.setdefault(line.field, {})[line.broker] = line.after
    return after


def check_unchanged(expected: str | None, found: str) -> None:
    """Raise PreconditionFailed when the caller's etag is out of date; None skips the check."""
    if expected is not None and expected != found:
        raise PreconditionFailed(
            _("Somebody changed this since you read it."),
            hint=_("Read it again, and repeat your change if it is still right."),
            etag=found,
        )
