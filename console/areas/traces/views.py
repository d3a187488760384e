"""Pages of a message's journey: search by message id or key, and the timeline."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from console.areas.messages.forms import TOPIC_CHARS_MAX, FindForm
from console.areas.messages.views import rows
from console.areas.traces.broker_events import broker_events_of, dead_letter_ids
from console.areas.traces.drawing import draw, steps
from console.frame.pages import ClusterPage, Crumb
from console.gateway import NotFound, now_ms
from console.gateway.messages.lookup import find
from console.gateway.traces.evidence import GroupDeliveryState
from console.gateway.traces.journey import Journey, journey
from console.services.schemas.stored import decoder_for


class FindJourneyPage(ClusterPage):
    """Search for a journey. A key shared by several messages gives a list."""

    template = "traces/find.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        asked = "q" in request.GET
        form = FindForm(request.GET if asked else None)
        if not asked or not form.is_valid():
            return self.show(title=_("Traces"), form=form, status=400 if asked else 200)
        text, topic = form.cleaned_data["q"].strip(), form.cleaned_data["topic"].strip()
        try:
            answer = self.cluster.ask(find, text, topic)
        except NotFound:
            return self._to_journey(text, topic)  # traces can outlive a deleted topic
        # Copies of a message share the message id; the oldest copy is the original.
        first = {ref.message.msg_id: ref for ref in answer.value.refs}
        if len(first) > 1:
            found = rows(first.values(), decoder_for(self.cluster))
            return self.show(title=_("Traces"), form=form, answer=answer, rows=found)
        only = next(iter(first.values()), None)
        if only is None:
            return self._to_journey(text, topic)
        return self._to_journey(only.message.msg_id, only.message.topic)

    def _to_journey(self, msg_id: str, topic: str) -> HttpResponseBase:
        url = reverse("traces:journey", kwargs={"cluster": self.cluster.name, "msg_id": msg_id})
        return redirect(f"{url}?{urlencode({'topic': topic})}" if topic else url)


class JourneyPage(ClusterPage):
    """The journey of a message: send, store, deliveries by group, outcome."""

    template = "traces/journey.html"

    def get(self, request: HttpRequest, cluster: str, msg_id: str) -> HttpResponse:
        topic = request.GET.get("topic", "")[:TOPIC_CHARS_MAX]
        answer = self.cluster.ask(journey, msg_id, topic)
        found = answer.value
        context: dict[str, Any] = {"answer": answer, "journey": found}
        if found.timeline is not None:
            seen = broker_events_of(self.cluster.name, found)
            context["drawing"] = draw(found.timeline, seen, now_ms())
            context["steps"] = steps(found.timeline, dead_letter_ids(found), seen)
            context["untraced"] = untraced(found)
        list_url = reverse("traces:find", kwargs={"cluster": self.cluster.name})
        crumbs = [Crumb(_("Traces"), list_url), Crumb(msg_id)]
        return self.show(title=msg_id, crumbs=crumbs, **context)


def untraced(found: Journey) -> list[GroupDeliveryState]:
    """Groups without traces, with a delivery state from brokers."""
    traced = {each.group for each in found.timeline.groups} if found.timeline else set()
    return [each for each in found.evidence.groups if each.group not in traced]
