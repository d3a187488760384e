"""Kinds of jobs. An area registers its own, in the `ready` of its `apps.py`:

    kinds.register(
        "replay", replay, title=_("Resend dead letters"), unit=_("messages"), can_pause=True
    )

and starts one with `tasks.start(cluster, "replay", scope=group, inputs={…}, by=user)`. The work
runs in the Celery worker:

    def replay(job: Job, control: Control) -> Done:
        for message in found(job.inputs):
            control.check()                    # raises Cancelled; blocks while paused
            send(message)
            control.moved(stage="send", done=sent, total=found)
        return Done(done=sent, outputs={"sent": sent, "failed": failed})

Work that was cancelled or lost its worker may be started anew with the same inputs. A kind that
says `can_continue` then goes on where it was; its inputs name the job before under `continues`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from console.frame.access import Need

if TYPE_CHECKING:
    from console.services.jobs.control import Control
    from console.services.jobs.models import Job
    from console.services.jobs.reports import Done

NAME_CHARS_MAX: Final = 16
#: A job that takes longer hangs.
JOB_SECONDS_MAX: Final = 6 * 3600

Work = Callable[["Job", "Control"], "Done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """What the console knows of one kind."""

    name: str
    title: Any
    work: Work
    #: Who may start, steer and fetch the files of such a job.
    need: Need = Need.WRITE
    #: One sentence for the list of jobs.
    about: Any = ""
    #: What `done` and `total` count; empty when it is not one thing.
    unit: Any = ""
    can_pause: bool = False
    can_continue: bool = False
    #: Whether the page and the resource of jobs start it, without inputs; else its area does.
    by_hand: bool = False
    uses_spark: bool = False
    #: Without the time it was paused.
    seconds_max: float = JOB_SECONDS_MAX
    stages: Mapping[str, Any] = field(default_factory=dict)
    #: Titles of the stages and outputs, by name; one that is not here is shown by its name.
    outputs: Mapping[str, Any] = field(default_factory=dict)
    #: A template of the area shown on the job's page, below the progress; it gets `job`.
    template: str = ""


_kinds: dict[str, JobKind] = {}


def register(name: str, work: Work, *, title: Any, **more: Any) -> JobKind:
    """Make a kind known; `more` are the fields of JobKind. Raises ValueError for a taken name."""
    if not 0 < len(name) <= NAME_CHARS_MAX or name in _kinds:
        raise ValueError(f"the name of a kind of jobs, {name!r}, is taken or cannot be used")
    _kinds[name] = kind = JobKind(name=name, title=title, work=work, **more)
    return kind


def unregister(name: str) -> None:
    """Forget a kind; rows of it stay, and are shown by its name."""
    _kinds.pop(name, None)


def find(name: str) -> JobKind | None:
    return _kinds.get(name)


def known() -> list[JobKind]:
    """All kinds in the order they were registered."""
    return list(_kinds.values())


def by_hand() -> list[JobKind]:
    """The kinds that the page of jobs starts."""
    return [kind for kind in known() if kind.by_hand]
