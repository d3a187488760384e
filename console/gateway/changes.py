"""What every change shares: brokers are told one by one, and each tells how it went."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.answers import BrokerFailure
from console.gateway.engine.errors import Changed, NotThere
from console.gateway.engine.session import BrokerRef, ClusterSession

T = TypeVar("T")

ETAG_CHARS = 16


@dataclass(frozen=True, slots=True)
class BrokerOutcome:
    """How one broker took a change; `error` is None where it was done."""

    broker: str
    addr: str
    error: str | None


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One line of a difference: what a setting is on one broker, and what it would become."""

    broker: str
    field: str
    before: Any
    after: Any


async def apply_change(
    session: ClusterSession,
    brokers: Iterable[BrokerRef],
    change: Callable[[BrokerRef], Awaitable[None]],
) -> tuple[BrokerOutcome, ...]:
    """Change every broker; raises Refused or ClusterUnreachable when none of them did it."""
    refs = list(brokers)
    _done, failures = await session.fan_out(refs, change)
    return outcomes(refs, failures)


def outcomes(
    refs: Iterable[BrokerRef], failures: Iterable[BrokerFailure]
) -> tuple[BrokerOutcome, ...]:
    reasons = {failure.addr: failure.reason for failure in failures}
    return tuple(BrokerOutcome(ref.name, ref.addr, reasons.get(ref.addr)) for ref in refs)


def brokers_named(refs: Sequence[BrokerRef], wanted: Sequence[str] | None) -> list[BrokerRef]:
    """The brokers of those names; all of them when no names are given."""
    if not wanted:
        return list(refs)
    known = {ref.name: ref for ref in refs}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise NotThere(
            format_lazy(_("The cluster has no broker named {names}."), names=", ".join(missing)),
            hint=format_lazy(_("It has: {names}."), names=", ".join(known) or "—"),
        )
    return [known[name] for name in dict.fromkeys(wanted)]


def configs_on(
    held: Iterable[tuple[BrokerRef, T]], wanted: Sequence[str] | None
) -> list[tuple[BrokerRef, T]]:
    """Of what brokers hold the part of the named ones; all of it when no names are given."""
    return [(ref, config) for ref, config in held if not wanted or ref.name in wanted]


def etag_of(configs: Iterable[tuple[BrokerRef, Any]]) -> str:
    """A digest of an object's configuration on all brokers; it changes with any of them."""
    state = sorted((ref.name, msgspec.to_builtins(config)) for ref, config in configs)
    text = json.dumps(state, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:ETAG_CHARS]


def states(configs: Iterable[tuple[BrokerRef, Any]]) -> dict[str, Any]:
    """An object's configuration by broker, in plain values: what the audit list keeps of it."""
    return {ref.name: msgspec.to_builtins(config) for ref, config in configs}


def check_unchanged(expected: str | None, found: str) -> None:
    """Raise Changed when whoever asks has seen another state; None means they do not care."""
    if expected is not None and expected != found:
        raise Changed(
            _("Somebody changed this since you read it."),
            hint=_("Read it again, and repeat your change if it is still right."),
        )
