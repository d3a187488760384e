"""Pages about one message's journey: find it by whatever is known of it, and its timeline."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from console.deadletters.ledger import resends_of
from console.gateway import NotThere
from console.gateway.finding import find
from console.gateway.traces import Journey, journey
from console.messages.forms import TOPIC_CHARS_MAX, FindForm
from console.messages.views import rows
from console.pages import ClusterPage, Crumb
from console.traces.drawing import Resent, draw, steps
from core_broker.message.topics import DLQ_PREFIX


class FindJourneyPage(ClusterPage):
    """Asks which message's journey to show; a key that several messages have lets one choose."""

    template = "traces/find.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        asked = "q" in request.GET
        form = FindForm(request.GET if asked else None)
        if not asked or not form.is_valid():
            return self.show(title=_("Traces"), form=form, status=400 if asked else 200)
        text, topic = form.cleaned_data["q"].strip(), form.cleaned_data["topic"].strip()
        try:
            answer = self.cluster.ask(find, text, topic)
        except NotThere:
            return self._to_journey(text, topic)  # the topic is gone, its traces may be there
        # Copies of one message share its id; the oldest of them is what the producer sent.
        first = {ref.message.msg_id: ref for ref in answer.value.refs}
        if len(first) > 1:
            found = rows(first.values())
            return self.show(title=_("Traces"), form=form, answer=answer, rows=found)
        only = next(iter(first.values()), None)
        if only is None:
            return self._to_journey(text, topic)
        return self._to_journey(only.message.msg_id, only.message.topic)

    def _to_journey(self, msg_id: str, topic: str) -> HttpResponseBase:
        url = reverse("traces:journey", kwargs={"cluster": self.cluster.name, "msg_id": msg_id})
        return redirect(f"{url}?{urlencode({'topic': topic})}" if topic else url)


class JourneyPage(ClusterPage):
    """The journey of one message: produce, store, each delivery to each group, and the outcome."""

    template = "traces/journey.html"

    def get(self, request: HttpRequest, cluster: str, msg_id: str) -> HttpResponse:
        topic = request.GET.get("topic", "")[:TOPIC_CHARS_MAX]
        answer = self.cluster.ask(journey, msg_id, topic)
        found = answer.value
        context: dict[str, Any] = {"answer": answer, "journey": found}
        if found.timeline is not None:
            context["drawing"] = draw(found.timeline)
            letters = letter_ids(found)
            resent = [
                Resent(row.at_ms, row.group, str(row.by or ""))
                for row in resends_of(self.cluster.name, list(letters.values()))
            ]
            context["steps"] = steps(found.timeline, letters, resent)
        list_url = reverse("traces:find", kwargs={"cluster": self.cluster.name})
        crumbs = [Crumb(_("Traces"), list_url), Crumb(msg_id)]
        return self.show(title=msg_id, crumbs=crumbs, **context)


def letter_ids(found: Journey) -> dict[tuple[str, int], str]:
    """Where the dead letters of a journey are, by group and time."""
    messages = [each.message for each in found.dead_letters]
    return {
        (each.topic.removeprefix(DLQ_PREFIX), each.store_timestamp): each.offset_msg_id
        for each in messages
    }
