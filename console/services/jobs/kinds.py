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

Work after a cancel or a lost worker can be started again with the same inputs. A kind with
`can_continue` resumes at the old position; the input `continues` names the previous job.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from console.frame.access import Need
from console.frame.permissions import Target

if TYPE_CHECKING:
    from console.services.jobs.control import Control
    from console.services.jobs.models import Job
    from console.services.jobs.reports import Done

NAME_CHARS_MAX: Final = 16
#: Maximum run time of a job, seconds.
JOB_SECONDS_MAX: Final = 6 * 3600

Work = Callable[["Job", "Control"], "Done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """The definition of a job kind."""

    name: str
    title: Any
    work: Work
    #: Permission to start and control jobs and to download files.
    need: Need = Need.WRITE
    #: What start, control and download also need: the permissions for what a job of the kind reads
    #: or changes. None: nothing more.
    reach: "Callable[[Job], tuple[tuple[Need, Target], ...]] | None" = None
    #: Description in the list of jobs.
    about: Any = ""
    #: Unit of `done` and `total`; empty for mixed units.
    unit: Any = ""
    can_pause: bool = False
    can_continue: bool = False
    #: True: pages and resources of jobs start the kind, without inputs. False: the area starts it.
    by_hand: bool = False
    uses_spark: bool = False
    #: Maximum run time without pauses, seconds.
    seconds_max: float = JOB_SECONDS_MAX
    stages: Mapping[str, Any] = field(default_factory=dict)
    #: Titles of stages and outputs by name; the name is the default.
    outputs: Mapping[str, Any] = field(default_factory=dict)
    #: Template shown below the progress on the page of a job, with `job` in the context.
    template: str = ""


_kinds: dict[str, JobKind] = {}


def register(name: str, work: Work, *, title: Any, **more: Any) -> JobKind:
    """Register a kind; `more` are fields of JobKind. Raises ValueError for a duplicate name."""
    if not 0 < len(name) <= NAME_CHARS_MAX or name in _kinds:
        raise ValueError(f"job kind {name!r} is already registered or not a valid name")
    _kinds[name] = kind = JobKind(name=name, title=title, work=work, **more)
    return kind


def unregister(name: str) -> None:
    """Remove a kind. Existing jobs stay and show the name of the kind."""
    _kinds.pop(name, None)


def find(name: str) -> JobKind | None:
    return _kinds.get(name)


def known() -> list[JobKind]:
    """All kinds in order of registration."""
    return list(_kinds.values())


def by_hand() -> list[JobKind]:
    """Kinds with a start button on the page of jobs."""
    return [kind for kind in known() if kind.by_hand]
