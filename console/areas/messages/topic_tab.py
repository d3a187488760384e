"""The tab Messages of a topic's page: the message list with a fixed topic."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.messages.views import MessageListPage
from console.frame.pages import Crumb
from console.gateway.topics.listing import topic_detail
from console.resources.models import Kind
from console.resources.protection import is_protected


class TopicMessagesPage(MessageListPage):
    """Messages of one topic, newest first."""

    template = "message/topic.html"
    area = "topics"
    access_query = ""  # the topic is in the path

    def get(self, request: HttpRequest, cluster: str, topic: str = "") -> HttpResponse:
        return super().get(request, cluster)

    def address(self) -> QueryDict:
        address = self.request.GET.copy()
        address["topic"] = self.kwargs["topic"]
        return address

    def frame(self) -> dict[str, Any]:
        cluster, topic = self.cluster.name, self.kwargs["topic"]
        return {
            "title": topic,
            "crumbs": [Crumb(_("Topics"), reverse("topics:list", args=[cluster])), Crumb(topic)],
            "topic": self.cluster.ask(topic_detail, topic).value,
            "tab": "messages",
            "protected": is_protected(cluster, Kind.TOPIC, topic),
        }
