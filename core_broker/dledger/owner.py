"""The interface between a member and its owner, the broker: events and actions."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from core_broker.dledger.model import Role


class Standing(NamedTuple):
    """Role, term and leader of a member."""

    role: Role
    term: int
    leader_id: str | None


class Hooks(NamedTuple):
    """What the owner of a member does."""

    #: Stage and write the messages of this event-loop iteration, before the role can change.
    flush: Callable[[], None]
    #: Role, term or leader changed; must fence a broker that no longer leads before it returns.
    changed: Callable[[Standing], None]
    #: Another member takes the leadership over, or no longer: refuse messages meanwhile.
    handing_over: Callable[[str | None], None]
    #: The commit index advanced.
    committed: Callable[[], None]
    #: Drop all bytes from a log position on; raises GantryError and OSError.
    truncate: Callable[[int], Awaitable[None]]
