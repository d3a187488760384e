"""Pages about dead letters: which groups have any, one group's, one letter, sending again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.audit import audited
from console.deadletters.forms import ResendForm
from console.deadletters.ledger import history, resend, sent_before
from console.deadletters.models import Resend
from console.gateway import NotThere
from console.gateway import deadletters as questions
from console.gateway.messages import MessageRef, browse
from console.gateway.newest_first import CursorError
from console.gateway.resends import Outcome, Result, Target, origin_topic
from console.messages.body import preview, view_body
from console.messages.properties import property_rows
from console.messages.views import BODY_FORM_NAMES, no_such_message, stored_message
from console.pages import ClusterPage, Crumb
from core_broker.message.properties import PROPERTY_ORIGIN_MESSAGE_ID
from core_broker.message.topics import dlq_topic

PAGE_LETTERS = 50


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter as lists show it; `resent` is the latest resend of it."""

    ref: MessageRef
    preview: str
    origin: str
    resent: Resend | None

    @property
    def resent_ms(self) -> int | None:
        return None if self.resent is None else self.resent.at_ms


def letters(cluster: str, refs: Iterable[MessageRef]) -> list[Letter]:
    shown = list(refs)
    known = sent_before(cluster, [each.message.offset_msg_id for each in shown])
    return [
        Letter(
            each,
            preview(each.message),
            origin_topic(each.message),
            known.get(each.message.offset_msg_id),
        )
        for each in shown
    ]


class GroupListPage(ClusterPage):
    """Every group that has dead letters."""

    template = "deadletters/list.html"
    part = "deadletters/list_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(questions.groups_with_dead_letters)
        total = sum(each.count or 0 for each in answer.value)
        return self.show(title=_("Dead letters"), answer=answer, total=total)


class LetterListPage(ClusterPage):
    """The dead letters of one group, newest first, with boxes to select those to send again."""

    template = "deadletters/group.html"

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        cursor = request.GET.get("cursor", "")
        summary = self.cluster.ask(questions.summary, group)
        topic = dlq_topic(group)
        try:
            answer = self.cluster.ask(browse, topic, cursor=cursor or None, limit=PAGE_LETTERS)
        except CursorError:
            cursor = ""
            answer = self.cluster.ask(browse, topic, limit=PAGE_LETTERS)
        except NotThere:
            return self.show(title=group, crumbs=self.crumbs(group), group=group)
        following = answer.value.next_cursor
        return self.show(
            title=group,
            crumbs=self.crumbs(group),
            group=group,
            summary=summary.value,
            answer=answer,
            letters=letters(self.cluster.name, answer.value.rows),
            form=ResendForm(ids=[]),
            next_query=urlencode({"cursor": following}) if following else "",
            is_first_page=not cursor,
        )

    def crumbs(self, group: str) -> list[Crumb]:
        list_url = reverse("deadletters:list", kwargs={"cluster": self.cluster.name})
        return [Crumb(_("Dead letters"), list_url), Crumb(group)]


class LetterPage(ClusterPage):
    """One dead letter: what it was, why it is here, and what was done about it."""

    template = "deadletters/letter.html"

    def get(
        self, request: HttpRequest, cluster: str, group: str, offset_msg_id: str
    ) -> HttpResponse:
        ref = stored_message(self, offset_msg_id)
        if ref.message.topic != dlq_topic(group):
            raise no_such_message(offset_msg_id)
        message = ref.message
        names = {"cluster": self.cluster.name}
        body = view_body(message, request.GET.get("form", ""))
        return self.show(
            title=message.msg_id,
            crumbs=[
                Crumb(_("Dead letters"), reverse("deadletters:list", kwargs=names)),
                Crumb(group, reverse("deadletters:group", kwargs={**names, "group": group})),
                Crumb(message.msg_id),
            ],
            group=group,
            ref=ref,
            message=message,
            body=body,
            body_forms=[(form, BODY_FORM_NAMES[form]) for form in body.forms],
            properties=property_rows(message.properties),
            origin=origin_topic(message),
            origin_id=message.properties.get(PROPERTY_ORIGIN_MESSAGE_ID, ""),
            history=history(self.cluster.name, message.offset_msg_id),
            form=ResendForm(ids=[offset_msg_id]),
        )


class ResendPage(ClusterPage):
    """Sends the selected dead letters again and shows one outcome for each of them."""

    template = "deadletters/resent.html"
    actions = {"post": "deadletter.resend"}

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponseBase:
        """Whoever comes back to the address of a form lands on the list, and sends nothing."""
        return redirect("deadletters:group", self.cluster.name, group)

    def post(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        form = ResendForm(request.POST, ids=request.POST.getlist("id"))
        names = {"cluster": self.cluster.name}
        crumbs = [
            Crumb(_("Dead letters"), reverse("deadletters:list", kwargs=names)),
            Crumb(group, reverse("deadletters:group", kwargs={**names, "group": group})),
            Crumb(_("Sent again")),
        ]
        context: dict[str, Any] = {"crumbs": crumbs, "group": group, "form": form}
        if not form.is_valid():
            return self.show(title=_("Nothing was sent"), status=400, outcomes=[], **context)
        target = Target(form.cleaned_data["target"])
        again = form.cleaned_data["again"]
        with audited(request, "deadletter.resend", cluster=cluster, target=group) as entry:
            outcomes = resend(self.cluster, group, form.ids, target, by=request.user, again=again)
            entry.after = {"target": target.value, "again": again}
            entry.outcomes(outcomes)
        return self.show(
            title=_("Sent again"),
            outcomes=outcomes,
            counts=count_results(outcomes),
            target=target,
            **context,
        )


def count_results(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How many of each result; every result is named, also those that did not happen."""
    counted = Counter(each.result for each in outcomes)
    return {result.value: counted[result] for result in Result}
