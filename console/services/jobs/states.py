"""The states of a job and which may follow which. Pure.

    queued ──▶ running ──▶ succeeded
       │        ▲  │  ├──▶ failed
       │        │  ▼  └──▶ cancelled
       │       paused ───▶ the same three: its work ends between the wish and its next look
       ├─────────────────▶ failed       no worker took it
       └─────────────────▶ cancelled

A running job that is to be cancelled stays running, with its wish written down, until its work
has ended.
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
#: A worker has it.
AT_WORK: Final = frozenset({State.RUNNING, State.PAUSED})


def may_follow(state: str, follower: str) -> bool:
    """Whether a job in `state` may become `follower`."""
    return State(follower) in NEXT[State(state)]


def before(follower: State) -> list[State]:
    """The states from which a job may become `follower`."""
    return [state for state, followers in NEXT.items() if follower in followers]
