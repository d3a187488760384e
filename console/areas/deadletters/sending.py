"""Pages that change dead letters: resend, edit and resend, discard, restore."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.areas.deadletters.forms import EditForm, ResendForm, id_problem
from console.areas.deadletters.ledger import resend
from console.areas.deadletters.requests import for_user, plan_of
from console.areas.deadletters.states import discard, restore
from console.areas.deadletters.views import DeadLetterPage, dead_letter_crumbs
from console.areas.messages.views import no_such_message, stored_message
from console.audit.recording import audited
from console.frame.pages import ClusterPage
from console.gateway import Unusable
from console.gateway.dead_letters.edits import NO_EDIT, Edit
from console.gateway.dead_letters.resend import Outcome, Plan, Result, Target
from core_broker.message.topics import dlq_topic

RESEND_ACTION = "deadletter.resend"


class ResendPage(ClusterPage):
    """Resends the selected dead letters and shows one outcome per message."""

    template = "deadletters/resent.html"
    actions = {"post": RESEND_ACTION}

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponseBase:
        """A GET of the form's URL redirects to the list and resends nothing."""
        return redirect("deadletters:group", self.cluster.name, group)

    def post(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        form = ResendForm(request.POST, ids=request.POST.getlist("id"))
        if not form.is_valid():
            return self.show_outcomes(group, form, [], status=400)
        try:
            plan = plan_of(form.asked, dry_run="dry_run" in request.POST)
        except Unusable as fault:
            form.add_error(None, str(fault.detail))
            return self.show_outcomes(group, form, [], status=400)
        plan = for_user(request, cluster, plan)
        outcomes = resend_audited(self, group, form.ids, plan, again=form.cleaned_data["again"])
        return self.show_outcomes(group, form, outcomes, plan=plan)

    def show_outcomes(
        self,
        group: str,
        form: ResendForm,
        outcomes: Iterable[Outcome],
        *,
        plan: Plan | None = None,
        status: int = 200,
    ) -> HttpResponse:
        if plan is None:
            title = _("Nothing resent")
        else:
            title = _("Preview: nothing resent") if plan.dry_run else _("Resent")
        return self.show(
            title=title,
            crumbs=dead_letter_crumbs(self.cluster.name, group, title),
            status=status,
            group=group,
            form=form,
            plan=plan,
            outcomes=list(outcomes),
            counts=count_results(outcomes),
        )


class EditPage(DeadLetterPage):
    """Resends one dead letter with edited fields; other fields stay unchanged."""

    actions = {"post": RESEND_ACTION}

    def get(
        self, request: HttpRequest, cluster: str, group: str, offset_msg_id: str
    ) -> HttpResponse:
        return redirect("deadletters:letter", self.cluster.name, group, offset_msg_id)

    def post(
        self, request: HttpRequest, cluster: str, group: str, offset_msg_id: str
    ) -> HttpResponse:
        ref = stored_message(self, offset_msg_id)
        if ref.message.topic != dlq_topic(group):
            raise no_such_message(offset_msg_id)
        edit_form = EditForm(request.POST, message=ref.message, masked=ref.masked)
        form = ResendForm(request.POST, ids=[offset_msg_id])
        if not (edit_form.is_valid() and form.is_valid()):
            return self.show_dead_letter(ref, group, edit_form, form=form, status=400)
        try:
            plan = Plan(
                target=Target(form.cleaned_data["target"]),
                topic=form.asked["topic"],
                edit=edit_form.edit,
                dry_run="dry_run" in request.POST,
            ).checked()
        except Unusable as fault:
            form.add_error(None, str(fault.detail))
            return self.show_dead_letter(ref, group, edit_form, form=form, status=400)
        plan = for_user(request, cluster, plan)
        outcomes = resend_audited(self, group, form.ids, plan, again=form.cleaned_data["again"])
        page = ResendPage()
        page.setup(request, cluster=cluster, group=group)
        return page.show_outcomes(group, form, outcomes, plan=plan)


class DiscardPage(ClusterPage):
    """Discards or restores the selected dead letters."""

    actions = {"post": "deadletter.discard"}

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponseBase:
        return redirect("deadletters:group", self.cluster.name, group)

    def post(self, request: HttpRequest, cluster: str, group: str) -> HttpResponseBase:
        ids = request.POST.getlist("id")
        problem = id_problem(ids)
        if problem is not None:
            messages.error(request, " ".join(problem.messages))
        elif "restore" in request.POST:
            with audited(request, "deadletter.restore", cluster=cluster, target=group) as entry:
                count = restore(self.cluster.name, group, ids)
                entry.after = {"ids": ids, "restored": count}
            text = ngettext(
                "%(n)d dead letter is open again.", "%(n)d dead letters are open again.", count
            )
            messages.success(request, text % {"n": count})
        else:
            with audited(request, "deadletter.discard", cluster=cluster, target=group) as entry:
                outcomes = discard(self.cluster, group, ids, by=request.user)
                entry.outcomes(outcomes)
            self._show_result(request, count_results(outcomes))
        return redirect("deadletters:group", self.cluster.name, group)

    @staticmethod
    def _show_result(request: HttpRequest, counts: dict[str, int]) -> None:
        text = ngettext(
            "%(n)d dead letter discarded. The message stays in the queue.",
            "%(n)d dead letters discarded. The messages stay in the queue.",
            counts[Result.SENT],
        )
        messages.success(request, text % {"n": counts[Result.SENT]})
        if counts[Result.FAILED]:
            messages.error(request, _("%(n)d no longer exist.") % {"n": counts[Result.FAILED]})


def resend_audited(
    page: ClusterPage, group: str, ids: list[str], plan: Plan, *, again: bool
) -> tuple[Outcome, ...]:
    """Resend dead letters with an audit entry. A dry run writes no entry."""
    request, cluster = page.request, page.cluster
    if plan.dry_run:
        return resend(cluster, group, ids, plan, by=request.user, again=again)
    with audited(request, RESEND_ACTION, cluster=cluster.name, target=group) as entry:
        outcomes = resend(cluster, group, ids, plan, by=request.user, again=again)
        entry.after = audit_details(plan, again=again)
        entry.outcomes(outcomes)
    return outcomes


def audit_details(plan: Plan, *, again: bool) -> dict[str, Any]:
    """A plan for the audit list: names of edited fields, without values."""
    return {
        "target": plan.target.value,
        "topic": plan.topic,
        "again": again,
        "edited": edited_fields(plan.edit),
    }


def edited_fields(edit: Edit) -> list[str]:
    """Names of the edited fields."""
    if edit == NO_EDIT:
        return []
    parts = {"body": edit.body, "tags": edit.tags, "keys": edit.keys}
    return [
        *(name for name, value in parts.items() if value is not None),
        *(name for name, _value in edit.properties),
        *edit.removed,
    ]


def count_results(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Counts by result; absent results count 0."""
    counted = Counter(each.result for each in outcomes)
    return {result.value: counted[result] for result in Result}
