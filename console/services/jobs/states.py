"""Job states and transitions. Pure.

    queued ──▶ running ──▶ succeeded
       │        ▲  │  ├──▶ failed
       │        │  ▼  └──▶ cancelled
       │       paused ───▶ the same three: the work ends between the pause and the next poll
       ├─────────────────▶ failed       no worker took it
       └─────────────────▶ cancelled

After a cancel, a running job stays running, with `cancel_requested` set, until the work has ended.
"""

from collections.abc import Mapping
from typing import Final

from django.db import models
from django.utils.translation import gettext_lazy as _


class State(models.TextChoices):
    QUEUED = "queued", _("waiting")
    RUNNING = "running", _("running")
    PAUSED = "paused", _("paused")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


_ENDS: Final = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
NEXT: Final[Mapping[State, frozenset[State]]] = {
    State.QUEUED: frozenset({State.RUNNING, State.FAILED, State.CANCELLED}),
    State.RUNNING: _ENDS | {State.PAUSED},
    State.PAUSED: _ENDS | {State.RUNNING},
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
}
ACTIVE: Final = frozenset(state for state, followers in NEXT.items() if followers)
#: States of a job claimed by a worker.
AT_WORK: Final = frozenset({State.RUNNING, State.PAUSED})


def may_follow(state: str, follower: str) -> bool:
    """Whether a job in `state` may become `follower`."""
    return State(follower) in NEXT[State(state)]


def before(follower: State) -> list[State]:
    """The states from which a job may become `follower`."""
    return [state for state, followers in NEXT.items() if follower in followers]
