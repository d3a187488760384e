"""Pages of groups and clients. `console.resources.pages` has the pages that change groups."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.groups import listing
from console.frame.pages import ClusterPage, Crumb, only_readable
from console.frame.permissions import Scope
from console.frame.tables import TableQuery
from console.gateway import BrokerFailure, merge_failures
from console.gateway.dead_letters.causes import newest_cause, newest_ms
from console.gateway.dead_letters.summary import summary
from console.gateway.groups.listing import group_rows, group_settings
from console.gateway.groups.members import group_clients, queue_owners, running_info
from console.gateway.groups.progress import (
    GroupQueue,
    group_offsets,
    with_owners,
)
from console.resources import history, label_filter
from console.resources.labels import labels_by_name, labels_of
from console.resources.models import Kind
from console.resources.protection import is_protected


class GroupListPage(ClusterPage):
    """List of groups with lag, consume rate, clients and dead letters."""

    template = "groups/list.html"
    part = "groups/list_rows.html"
    access_names = Scope.SOME

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = only_readable(request, "groups", self.cluster, self.cluster.ask(group_rows))
        chosen = request.GET.get("show", "")
        query = TableQuery.of_page(request, listing.COLUMNS, table="groups", default="name")
        numbers, lines = listing.numbered(self.cluster, answer.value, query.ordered_by, chosen)
        passing = listing.passing(lines, chosen)
        page = query.page(label_filter.matching(query, cluster, Kind.GROUP, passing))
        numbers.fill(page.rows)
        told = numbers.as_answer(answer.failures)
        return self.show(
            title=_("Groups"),
            answer=told,
            failures=told.failures,
            page=page,
            left_out=numbers.left_out,
            choice=query.choice,
            labels=labels_by_name(cluster, Kind.GROUP, page.names),
            chosen=chosen if chosen in listing.FILTERS else "",
            chips=listing.chips(lines, complete=numbers.all_known),
            all_count=len(listing.passing(lines, "")),
        )


class GroupTab(ClusterPage):
    """A page of one group, in the frame with the tabs; `tab` is the name of the tab."""

    tab: ClassVar[str]

    def show_tab(self, *failures: Sequence[BrokerFailure], **more: Any) -> HttpResponse:
        cluster, group = self.cluster.name, self.kwargs["group"]
        settings = self.cluster.ask(group_settings, group)
        members, member_failures = self.ask_if_up(group_clients, group)
        return self.show(
            title=group,
            crumbs=[Crumb(_("Groups"), reverse("groups:list", args=[cluster])), Crumb(group)],
            answer=settings,
            failures=merge_failures(settings.failures, member_failures, *map(tuple, failures)),
            group=group,
            tab=self.tab,
            settings=settings.value,
            brokers=[ref.name for ref, _config in settings.value],
            members=members,
            protected=is_protected(cluster, Kind.GROUP, group),
            **more,
        )


class GroupPage(GroupTab):
    """The overview of a group: lag, dead letters, topics, charts."""

    template = "groups/detail.html"
    part = "groups/detail_live.html"
    tab = "overview"

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        self.cluster.ask(group_settings, group)  # 404 for a group that does not exist
        offsets, offset_failures = self.ask_if_up(group_offsets, group)
        letters, letter_failures = self.ask_if_up(summary, group)
        why = None
        if letters:
            why, _why_failures = self.ask_if_up(newest_cause, group, letters.newest_ms)
            letters = replace(letters, newest_ms=newest_ms(letters.newest_ms, why))
        return self.show_tab(
            offset_failures,
            letter_failures,
            progress=offsets and offsets.progress,
            topics=by_topic(offsets.queues if offsets else ()),
            letters=letters,
            labels=labels_of(cluster, Kind.GROUP, group),
            why=why,
        )


class QueuesPage(GroupTab):
    """The offsets of a group by queue, and the client of each queue."""

    template = "groups/queues.html"
    part = "groups/queues_live.html"
    tab = "queues"

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        self.cluster.ask(group_settings, group)
        offsets, failures = self.ask_if_up(group_offsets, group)
        owners, _owner_failures = self.ask_if_up(queue_owners, group)
        held = with_owners(offsets.queues if offsets else (), owners or {})
        progress = offsets and offsets.progress
        return self.show_tab(
            failures,
            topics=by_topic(held),
            unseen_topics=progress.unseen_topics if progress else 0,
            highest=max([1, *(queue.lag or 0 for queue in held)]),
        )


class ConsumersPage(GroupTab):
    """The connected clients of a group and their subscriptions."""

    template = "groups/consumers.html"
    part = "groups/consumers_live.html"
    tab = "consumers"

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        return self.show_tab()


class ConfigurationPage(GroupTab):
    """The settings of a group by broker, and their last changes."""

    template = "groups/configuration.html"
    tab = "configuration"

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        return self.show_tab(past=history.recent(cluster, Kind.GROUP, group))


def by_topic(queues: tuple[GroupQueue, ...]) -> list[tuple[str, list[GroupQueue], int | None]]:
    """Queues grouped by topic, with the lag of each topic. The order of `queues` is kept."""
    parts = []
    for topic, found in groupby(queues, key=lambda queue: queue.topic):
        held = list(found)
        lags = [queue.lag for queue in held if queue.lag is not None]
        parts.append((topic, held, sum(lags) if lags else None))
    return parts


class ClientPage(ClusterPage):
    """Running info of a consumer, requested through the consumer's broker."""

    template = "groups/client.html"

    def get(self, request: HttpRequest, cluster: str, group: str, client: str) -> HttpResponse:
        with_stack = request.GET.get("stack") == "1"
        answer = self.cluster.ask(running_info, group, client, with_stack)
        member, info = answer.value
        return self.show(
            title=client,
            crumbs=[
                Crumb(_("Groups"), reverse("groups:list", args=[cluster])),
                Crumb(group, reverse("groups:detail", args=[cluster, group])),
                Crumb(client),
            ],
            answer=answer,
            group=group,
            member=member,
            info=info,
            queues=sorted(info.mq_table.items()),
            statuses=sorted(info.status_table.items()),
            properties=sorted(info.properties.items()),
            with_stack=with_stack,
        )
