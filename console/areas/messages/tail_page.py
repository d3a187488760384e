"""The page of a live tail. The address holds the parameters; rows arrive over a WebSocket."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.messages.forms import RATE, TailForm
from console.areas.messages.views import known_topics
from console.frame.pages import ClusterPage, Crumb
from console.frame.permissions import Scope
from console.gateway.messages.browse import queue_names
from console.gateway.messages.filters import BodyTest

#: Maximum number of rows on the page; older rows are removed.
ROWS_SHOWN_MAX = 500
ASKED_IN_ADDRESS = ("topic", "queue", "tags", "sql", "body_test", "body", "rate")


class TailPage(ClusterPage):
    """New messages of a topic."""

    template = "message/tail.html"
    access_query, access_names = "topic", Scope.SOME

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        is_submitted = "topic" in request.GET
        usual = {"body_test": BodyTest.TEXT.value, "rate": str(RATE)}
        form = TailForm(usual | request.GET.dict() if is_submitted else None, initial=usual)
        is_usable = is_submitted and form.is_valid()
        context: dict[str, Any] = {
            "form": form,
            "topics": [row.name for row in known_topics(request, self.cluster)],
        }
        if is_usable:
            query = {name: request.GET[name] for name in ASKED_IN_ADDRESS if request.GET.get(name)}
            topic = form.cleaned_data["topic"]
            context |= {
                "topic": topic,
                "query": urlencode(query),
                "list_query": urlencode({**query, "rate": ""}),
                "queues": self.cluster.ask(queue_names, topic).value,
                "rows_max": ROWS_SHOWN_MAX,
            }
        home = reverse("message:list", kwargs={"cluster": self.cluster.name})
        return self.show(
            title=_("Live tail"),
            crumbs=[Crumb(_("Messages"), home), Crumb(_("Live tail"))],
            status=200 if is_usable or not is_submitted else 400,
            **context,
        )
