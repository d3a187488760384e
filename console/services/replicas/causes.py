"""Why the master of a set changed, from two observations. Pure."""

from dataclasses import dataclass

from console.gateway.replicas.model import ReplicaSet
from console.services.replicas.models import Cause


@dataclass(frozen=True, slots=True)
class Seen:
    """The master of a set at one time; an empty `addr`: no master answered.

    `last_addr` is the newest master that answered.
    """

    addr: str
    number: int | None
    epoch: int | None
    last_addr: str
    last_number: int | None


def seen_in(found: ReplicaSet, before: Seen | None) -> Seen:
    """Return the observation of a set."""
    master = found.master if found.has_master else None
    if master is not None:
        return Seen(master.addr, master.number, found.master_epoch, master.addr, master.number)
    last = ("", None) if before is None else (before.last_addr, before.last_number)
    return Seen("", None, found.master_epoch, *last)


def is_change(before: Seen | None, now: Seen) -> bool:
    """Whether an observation differs from the one before; an unknown epoch differs from none."""
    if before is None or before.addr != now.addr:
        return True
    return bool(now.addr) and None not in (before.epoch, now.epoch) and before.epoch != now.epoch


def cause_of(
    before: Seen | None, now: Seen, found: ReplicaSet, seen_ms: int, *, is_resumed: bool
) -> Cause:
    """Return the cause of a change; `seen_ms` is the time of the observation before.

    Boot times are of the brokers' clocks.
    """
    if before is None:
        return Cause.FIRST
    if is_resumed:
        return Cause.UNWATCHED
    if not now.addr:
        return Cause.LOST
    if before.last_addr == now.addr:
        return Cause.RETURNED if not before.addr else Cause.ELECTED_AGAIN
    if not before.last_addr:
        return Cause.FIRST
    old = next((one for one in found.replicas if one.addr == before.last_addr), None)
    if old is None or old.state == "down":
        return Cause.MASTER_LOST
    if old.started_ms is not None and old.started_ms > seen_ms:
        return Cause.MASTER_RESTARTED
    # A process that did not answer in between, and answers now, was lost as well.
    return Cause.HANDED_OVER if before.addr else Cause.MASTER_LOST
