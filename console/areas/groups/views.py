"""Pages of groups and clients. `console.resources.pages` has the pages that change groups."""

from itertools import groupby

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.groups import listing
from console.frame.pages import ClusterPage, Crumb, only_readable
from console.frame.permissions import Scope
from console.frame.tables import TableQuery
from console.gateway import merge_failures
from console.gateway.dead_letters.causes import newest_cause
from console.gateway.dead_letters.summary import summary
from console.gateway.groups.listing import group_rows, group_settings
from console.gateway.groups.members import group_clients, queue_owners, running_info
from console.gateway.groups.progress import GroupQueue, progress_of, queue_progress, with_owners
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
        query = TableQuery.read(request.GET, listing.COLUMNS, default="name")
        numbers, lines = listing.numbered(self.cluster, answer.value, query.ordered_by, chosen)
        page = query.page(query.matching(listing.passing(lines, chosen)))
        numbers.fill(page.rows)
        told = numbers.as_answer(answer.failures)
        return self.show(
            title=_("Groups"),
            answer=told,
            failures=told.failures,
            page=page,
            left_out=numbers.left_out,
            chosen=chosen if chosen in listing.FILTERS else "",
            chips=listing.chips(lines, complete=numbers.all_known),
            all_count=len(listing.passing(lines, "")),
        )


class GroupPage(ClusterPage):
    """A group: offsets by queue, clients, subscriptions, settings."""

    template = "groups/detail.html"
    part = "groups/detail_live.html"

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        settings = self.cluster.ask(group_settings, group)
        queues, queue_failures = self.ask_if_up(queue_progress, group)
        clients, client_failures = self.ask_if_up(group_clients, group)
        owners, _owner_failures = self.ask_if_up(queue_owners, group)
        letters, letter_failures = self.ask_if_up(summary, group)
        why, _why_failures = self.ask_if_up(newest_cause, group) if letters else (None, ())
        held = with_owners(queues or (), owners or {})
        return self.show(
            title=group,
            crumbs=[Crumb(_("Groups"), reverse("groups:list", args=[cluster])), Crumb(group)],
            answer=settings,
            failures=merge_failures(
                settings.failures, queue_failures, client_failures, letter_failures
            ),
            group=group,
            settings=settings.value,
            progress=progress_of(held, ()),
            topics=by_topic(held),
            members=clients,
            letters=letters,
            why=why,
            protected=is_protected(cluster, Kind.GROUP, group),
        )


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
