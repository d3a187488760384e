"""Pages that show topics. Those that change them are in `changes.py`."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from console.gateway import merge_failures
from console.gateway.readers import readers_of
from console.gateway.topics import numbers_of, topic_detail, topic_rows
from console.pages import ClusterPage, Crumb
from console.tables import TableQuery
from console.topics import listing


class TopicListPage(ClusterPage):
    """All topics; their numbers are fetched for the rows that are shown."""

    template = "topics/list.html"
    part = "topics/list_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(topic_rows)
        kind = request.GET.get("type", "")
        search = TableQuery.read(request.GET, listing.COLUMNS, default="name")
        found = search.matching(listing.of_kind(answer.value, kind))
        columns = listing.columns_for(len(found))
        query = TableQuery.read(request.GET, columns, default="name")
        failures = answer.failures
        if columns is listing.ALL_COLUMNS:
            numbers = self.cluster.ask(numbers_of, tuple(row.name for row in found))
            page = query.page(listing.with_numbers(found, numbers.value))
        else:
            page = query.page(listing.with_numbers(found, {}))
            numbers = self.cluster.ask(numbers_of, tuple(line.name for line in page.rows))
            page.rows[:] = listing.with_numbers((line.row for line in page.rows), numbers.value)
        return self.show(
            title=_("Topics"),
            answer=numbers,
            failures=failures or numbers.failures,
            page=page,
            kind=kind if kind in listing.KINDS else "",
            chips=listing.chips(answer.value),
            all_count=len(answer.value),
        )


class TopicPage(ClusterPage):
    """One topic: its queues, where it lives, who consumes it, how it is configured."""

    template = "topics/detail.html"

    def get(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        answer = self.cluster.ask(topic_detail, topic)
        detail = answer.value
        readers = self.cluster.ask(readers_of, topic)
        return self.show(
            title=topic,
            crumbs=[Crumb(_("Topics"), reverse("topics:list", args=[cluster])), Crumb(topic)],
            answer=answer,
            failures=merge_failures(answer.failures, readers.failures),
            topic=detail,
            readers=readers,
        )
