"""Pages of topics. `console.resources.pages` has the pages that change topics."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.topics import listing
from console.frame.pages import ClusterPage, Crumb, only_readable
from console.frame.permissions import Scope
from console.frame.tables import TableQuery
from console.gateway import merge_failures
from console.gateway.groups.topic_groups import groups_reading
from console.gateway.topics.listing import topic_detail, topic_rows
from console.gateway.topics.metrics import bulk_topic_metrics, topic_metrics
from console.resources.models import Kind
from console.resources.protection import is_protected


class TopicListPage(ClusterPage):
    """List of topics. Metrics are requested for the rows of the page."""

    template = "topics/list.html"
    part = "topics/list_rows.html"
    access_names = Scope.SOME

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = only_readable(request, "topics", self.cluster, self.cluster.ask(topic_rows))
        kind = request.GET.get("type", "")
        query = TableQuery.read(request.GET, listing.COLUMNS, default="name")
        found = query.matching(listing.of_kind(answer.value, kind))
        numbers, lines = listing.numbered(self.cluster, found, query.ordered_by)
        page = query.page(lines)
        numbers.fill(page.rows)
        told = numbers.as_answer(answer.failures)
        return self.show(
            title=_("Topics"),
            answer=told,
            failures=told.failures,
            page=page,
            left_out=numbers.left_out,
            kind=kind if kind in listing.KINDS else "",
            chips=listing.chips(answer.value),
            all_count=len(answer.value),
        )


class TopicPage(ClusterPage):
    """A topic: queues, configuration by broker, consumer groups."""

    template = "topics/detail.html"

    def get(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        answer = self.cluster.ask(topic_detail, topic)
        detail = answer.value
        numbers, failures = self.ask_if_up(topic_metrics, topic)
        if numbers is None:  # the last values of the list
            numbers = self.cluster.ask(bulk_topic_metrics).value.by_name.get(topic)
        readers, reader_failures = self.ask_if_up(groups_reading, topic)
        return self.show(
            title=topic,
            crumbs=[Crumb(_("Topics"), reverse("topics:list", args=[cluster])), Crumb(topic)],
            answer=answer,
            failures=merge_failures(answer.failures, failures, reader_failures),
            topic=detail,
            numbers=numbers,
            protected=is_protected(cluster, Kind.TOPIC, topic),
            readers=readers,
        )
