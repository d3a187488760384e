"""Pages about one message's journey: find it by id, and its timeline."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.forms import TablerForm
from console.gateway.traces import journey
from console.messages.forms import SEARCH_CHARS_MAX, TOPIC_CHARS_MAX
from console.pages import ClusterPage, Crumb
from console.traces.drawing import draw


class JourneyForm(TablerForm):
    """Which message."""

    msg_id = forms.CharField(
        label=gettext_lazy("Message id"),
        max_length=SEARCH_CHARS_MAX,
        help_text=gettext_lazy("The id that the producer got when it sent the message."),
    )
    topic = forms.CharField(
        label=gettext_lazy("Topic"),
        max_length=TOPIC_CHARS_MAX,
        required=False,
        help_text=gettext_lazy("With it, the time of storing is shown too."),
    )


class FindJourneyPage(ClusterPage):
    """Asks which message's journey to show."""

    template = "traces/find.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        asked = "msg_id" in request.GET
        form = JourneyForm(request.GET if asked else None)
        if asked and form.is_valid():
            names = {"cluster": self.cluster.name, "msg_id": form.cleaned_data["msg_id"].strip()}
            topic = form.cleaned_data["topic"].strip()
            query = f"?{urlencode({'topic': topic})}" if topic else ""
            return redirect(reverse("traces:journey", kwargs=names) + query)
        return self.show(title=_("Traces"), form=form, status=400 if asked else 200)


class JourneyPage(ClusterPage):
    """The journey of one message: produce, store, each delivery to each group, and the outcome."""

    template = "traces/journey.html"

    def get(self, request: HttpRequest, cluster: str, msg_id: str) -> HttpResponse:
        topic = request.GET.get("topic", "")[:TOPIC_CHARS_MAX]
        answer = self.cluster.ask(journey, msg_id, topic)
        found = answer.value
        context: dict[str, Any] = {"answer": answer, "journey": found, "topic": topic}
        if found.timeline is not None:
            context["drawing"] = draw(found.timeline)
        list_url = reverse("traces:find", kwargs={"cluster": self.cluster.name})
        crumbs = [Crumb(_("Traces"), list_url), Crumb(msg_id)]
        return self.show(title=msg_id, crumbs=crumbs, **context)
