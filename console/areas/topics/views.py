"""Pages of topics. `console.resources.pages` has the pages that change topics."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.topics import listing
from console.frame.access import Need, may
from console.frame.pages import ClusterPage, Crumb, only_readable
from console.frame.permissions import Scope, Target
from console.frame.tables import TableQuery
from console.gateway import Answer, BrokerFailure, GatewayError, merge_failures
from console.gateway.acl_users.topic_rules import topic_rules
from console.gateway.groups.topic_groups import groups_reading
from console.gateway.topics.listing import TopicDetail, topic_detail, topic_rows
from console.gateway.topics.metrics import bulk_topic_metrics, topic_metrics
from console.resources import history, label_filter
from console.resources.labels import labels_by_name, labels_of
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
        query = TableQuery.of_page(request, listing.COLUMNS, table="topics", default="name")
        every = label_filter.matching(query, cluster, Kind.TOPIC, answer.value)
        found = listing.shown(every, kind)
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
            choice=query.choice,
            labels=labels_by_name(cluster, Kind.TOPIC, page.names),
            kind=kind if kind in {*listing.KINDS, listing.ALL} else "",
            chips=listing.chips(answer.value),
            own_count=len(listing.shown(answer.value, "")),
            all_count=len(answer.value),
            internal_matches=len(every) - len(found),
        )


class TopicTab(ClusterPage):
    """A page of one topic, in the frame with the tabs; `tab` is the name of the tab."""

    tab: ClassVar[str]

    def show_tab(
        self, detail: Answer[TopicDetail], *failures: Sequence[BrokerFailure], **more: Any
    ) -> HttpResponse:
        cluster, name = self.cluster.name, detail.value.row.name
        return self.show(
            title=name,
            crumbs=[Crumb(_("Topics"), reverse("topics:list", args=[cluster])), Crumb(name)],
            answer=detail,
            failures=merge_failures(detail.failures, *map(tuple, failures)),
            topic=detail.value,
            tab=self.tab,
            protected=is_protected(cluster, Kind.TOPIC, name),
            **more,
        )


class TopicPage(TopicTab):
    """The overview of a topic: metrics and charts."""

    template = "topics/detail.html"
    part = "topics/overview_live.html"
    tab = "overview"

    def get(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        detail = self.cluster.ask(topic_detail, topic)
        numbers, failures = self.ask_if_up(topic_metrics, topic)
        if numbers is None:  # the last values of the list
            numbers = self.cluster.ask(bulk_topic_metrics).value.by_name.get(topic)
        labels = labels_of(cluster, Kind.TOPIC, topic)
        return self.show_tab(detail, failures, numbers=numbers, labels=labels)


class ConsumersPage(TopicTab):
    """The consumer groups of a topic with their lag."""

    template = "topics/consumers.html"
    part = "topics/consumers_live.html"
    tab = "consumers"

    def get(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        detail = self.cluster.ask(topic_detail, topic)
        numbers, failures = self.ask_if_up(topic_metrics, topic)
        readers, reader_failures = self.ask_if_up(groups_reading, topic)
        return self.show_tab(
            detail, failures, reader_failures, numbers=numbers, readers=readers or ()
        )


class QueuesPage(TopicTab):
    """The queues of a topic; bars compare their stored messages."""

    template = "topics/queues.html"
    part = "topics/queues_live.html"
    tab = "queues"

    def get(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        detail = self.cluster.ask(topic_detail, topic)
        fullest = max((queue.stored or 0 for queue in detail.value.queues), default=0)
        return self.show_tab(detail, fullest=max(1, fullest))


class ConfigurationPage(TopicTab):
    """The configuration of a topic by broker, and its last changes."""

    template = "topics/configuration.html"
    tab = "configuration"

    def get(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        detail = self.cluster.ask(topic_detail, topic)
        past = history.recent(cluster, Kind.TOPIC, topic)
        return self.show_tab(detail, past=past)


class PermissionsPage(TopicTab):
    """The permission of a topic by broker, and the rules of users that cover the topic.

    Only administrators of users see the rules, as on the pages of users.
    """

    template = "topics/permissions.html"
    tab = "permissions"

    def get(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        detail = self.cluster.ask(topic_detail, topic)
        if not may(request.user, Need.ADMIN, Target("acl", cluster)):
            return self.show_tab(detail, hides_rules=True)
        try:
            rules = self.cluster.ask(topic_rules, topic)
        except GatewayError as fault:
            return self.show_tab(detail, rules_problem=str(fault.hint or fault.detail))
        return self.show_tab(detail, rules.failures, rules=rules.value)
