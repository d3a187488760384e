"""Replays: a job resends matching dead letters, oldest first, at a limited rate.

A step reads a chunk of dead letters, resends the matching messages through the ledger, and saves
the progress of the replay. After the loss of a worker, the next job repeats the last step: messages
with a ledger row are counted without a resend, and messages in state “sending” at the crash count
as failed with an unknown outcome.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from django.db.models import F
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.areas.deadletters.ledger import (
    IDS_AT_ONCE,
    Person,
    fail_abandoned,
    person,
    resend_messages,
)
from console.areas.deadletters.models import Replay, Resend
from console.areas.deadletters.requests import filter_of, plan_of
from console.frame.access import Need
from console.frame.masking import mask_of_job, seen_by
from console.frame.permissions import Target
from console.gateway import Cluster, GatewayError, NotFound, gateway
from console.gateway.dead_letters.resend import Outcome, Plan, Result
from console.gateway.dead_letters.search import (
    REPLAY_CHUNK_MAX,
    DeadLetterFilter,
    read_range,
    replay_ranges,
)
from console.gateway.messages.stored import MessageRef
from console.services.jobs import tasks
from console.services.jobs.control import Control, JobFailed
from console.services.jobs.models import Job
from console.services.jobs.reports import Done

KIND: Final = "replay"
#: Duration of a step, seconds.
STEP_S: Final = 0.2
#: Consecutive failures that end the job: the target is probably broken.
CONSECUTIVE_FAILURES_MAX: Final = 100
REPLAYS_KEPT: Final = 200
#: Key of a replay's parameters: the topics that the user saw unmasked (`console.frame.masking`).
UNMASKED: Final = "unmasked"
RESULTS: Final = (Result.SENT.value, Result.FAILED.value, Result.SKIPPED.value)


def begin(
    cluster: Cluster, group: str, wish: Mapping[str, Any], rate: int, *, by: Person
) -> tuple[Replay, Job]:
    """Record the offset ranges of a replay, and enqueue the job.

    Raises NotFound for a group without dead letters, Unusable for invalid parameters,
    and the errors of `tasks.start`.
    """
    plan_of(wish)
    wanted = filter_of(cluster.name, group, wish.get("filter") or {})
    found = cluster.ask(replay_ranges, group, wanted).value
    if not found:
        raise NotFound(format_lazy(_("Group “{group}” has no dead letters."), group=group))
    replay = Replay.objects.create(
        cluster=cluster.name,
        group=group,
        batch=uuid4(),
        wish={**wish, UNMASKED: seen_by(by, cluster.name)},
        rate=rate,
        pieces=[list(each) for each in found],
        total=sum(end - start for _key, start, end in found),
        by=person(by),
    )
    try:
        job = tasks.start(cluster.name, KIND, scope=group, inputs={"replay": replay.pk}, by=by)
    except GatewayError:
        replay.delete()
        raise
    _forget_oldest(cluster.name, group)
    return replay, job


def work(job: Job, control: Control) -> Done:
    """Run a replay to completion."""
    replay = Replay.objects.filter(pk=job.inputs.get("replay"), cluster=job.cluster).first()
    if replay is None:
        raise JobFailed("The replay of this job was deleted.")
    fail_abandoned(replay.batch)
    cluster = gateway.cluster(replay.cluster)
    wanted = filter_of(replay.cluster, replay.group, replay.wish.get("filter") or {})
    mask = mask_of_job(replay.cluster, replay.wish.get(UNMASKED, ()))
    plan = replace(plan_of(replay.wish), mask=mask)
    pace = Pace(replay.rate)
    consecutive_failures = 0
    while replay.pieces:
        control.check()
        try:
            outcomes = step(cluster, replay, wanted, plan, most=pace.step_size)
        except GatewayError as failure:
            raise JobFailed(str(failure.detail)) from failure
        consecutive_failures = count_consecutive_failures(consecutive_failures, outcomes)
        report_progress(control, replay)
        if consecutive_failures >= CONSECUTIVE_FAILURES_MAX and replay.pieces:
            raise JobFailed(f"{consecutive_failures} consecutive failures: {outcomes[-1].reason}")
        control.wait(pace.delay_s(len(outcomes)))
    report_progress(control, replay)
    return Done(done=replay.looked_at, outputs=counts(replay))


def reach(job: Job) -> tuple[tuple[Need, Target], ...]:
    """A replay changes the dead letters of its group."""
    return ((Need.WRITE, Target("deadletters", job.cluster, job.scope)),)


def step(
    cluster: Cluster, replay: Replay, wanted: DeadLetterFilter, plan: Plan, *, most: int
) -> list[Outcome]:
    """Read the oldest remaining dead letters, resend the matching messages, save the progress.

    Returns the outcomes of new resends. Outcomes of an earlier worker are only counted.
    """
    key, start, end = replay.pieces[0]
    refs, until = cluster.ask(read_range, replay.group, (key, start, end), most).value
    matching = [each for each in refs if wanted.matches(each.message, plan.mask)]
    before = _results_of(replay, matching)
    new = [each for each in matching if each.message.offset_msg_id not in before]
    outcomes: list[Outcome] = []
    if new:
        again = bool(replay.wish.get("again"))
        outcomes += resend_messages(
            cluster, replay.group, new, plan, by=replay.by, batch=replay.batch, again=again
        )
    counted = Counter([*before.values(), *(each.result.value for each in outcomes)])
    replay.looked_at += until - start
    replay.matched += len(matching)
    replay.sent += counted[Result.SENT]
    replay.failed += counted[Result.FAILED]
    replay.skipped += counted[Result.SKIPPED]
    rest = [[key, until, end]] if until < end else []
    replay.pieces = rest + replay.pieces[1:]
    replay.save(update_fields=["looked_at", "matched", "sent", "failed", "skipped", "pieces"])
    return outcomes


def counts(replay: Replay) -> dict[str, Any]:
    """Current counts: `matched` is the sum of sent, failed and skipped."""
    return {
        "matched": replay.matched,
        "sent": replay.sent,
        "failed": replay.failed,
        "skipped": replay.skipped,
    }


def report_progress(control: Control, replay: Replay) -> None:
    control.moved(stage="send", done=replay.looked_at, total=replay.total, outputs=counts(replay))


def count_consecutive_failures(before: int, outcomes: Iterable[Outcome]) -> int:
    for each in outcomes:
        before = before + 1 if each.result is Result.FAILED else 0
    return before


class Pace:
    """A rate limit in messages per second. Idle and paused time gives no burst credit."""

    def __init__(self, rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._due = clock()
        #: Messages per step.
        self.step_size = max(1, min(REPLAY_CHUNK_MAX, math.ceil(rate * STEP_S)))

    def delay_s(self, done: int) -> float:
        """Delay after `done` more messages, seconds."""
        now = self._clock()
        self._due = max(self._due, now - 1.0) + done / self._rate
        return max(0.0, self._due - now)


def no_such_replay(number: int) -> NotFound:
    return NotFound(
        format_lazy(_("There is no replay {number} of this group."), number=number),
        hint=_("Only the newest replays are kept."),
    )


def outcomes_of(replay: Replay) -> Any:
    """Ledger rows of a replay, newest first."""
    return Resend.objects.filter(batch=replay.batch).order_by("-id")


def job_of(replay: Replay) -> Job | None:
    """The newest job of a replay; None after its deletion."""
    jobs = Job.objects.filter(cluster=replay.cluster, kind=KIND, inputs__replay=replay.pk)
    return jobs.order_by("-pk").first()


def _results_of(replay: Replay, refs: Iterable[MessageRef]) -> dict[str, str]:
    """Results of an earlier worker from the ledger, by id."""
    ids = [each.message.offset_msg_id for each in refs]
    assert len(ids) <= IDS_AT_ONCE
    rows = Resend.objects.filter(batch=replay.batch, offset_msg_id__in=ids)
    return dict(rows.values_list("offset_msg_id", F("result")))


def _forget_oldest(cluster: str, group: str) -> None:
    rows = Replay.objects.filter(cluster=cluster, group=group)
    keys = list(rows.values_list("pk", flat=True)[REPLAYS_KEPT : REPLAYS_KEPT * 2])
    Replay.objects.filter(pk__in=keys).delete()
