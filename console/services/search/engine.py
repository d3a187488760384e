"""The search box of every page: topics, groups, brokers, pages, actions and messages.

A name matches when every search word is part of the name. Text with the syntax of a message id or
position is looked up at once; for other text, an entry offers a search by key. An empty text
returns recently viewed items.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.request import Request

from console.frame.access import Need, may, readable_names
from console.frame.areas import areas
from console.frame.pages import may_enter
from console.frame.permissions import Scope, Target
from console.gateway import BrokerFailure, Cluster, GatewayError
from console.gateway.messages.lookup import find, is_exact_reference
from console.gateway.search import names
from console.services.search.recent import recent_items

Asker = HttpRequest | Request

ENTRIES_OF_KIND_MAX = 8
TEXT_CHARS_MAX = 255


@dataclass(frozen=True, slots=True)
class Entry:
    """A search result. `kind` is a key of KINDS."""

    kind: str
    title: str
    url: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    entries: tuple[Entry, ...]
    failures: tuple[BrokerFailure, ...] = ()
    #: Error of the cluster request; pages and actions are returned nevertheless.
    trouble: str = ""


KINDS = {
    "message": gettext_lazy("Message"),
    "topic": gettext_lazy("Topic"),
    "group": gettext_lazy("Group"),
    "broker": gettext_lazy("Broker"),
    "page": gettext_lazy("Page"),
    "action": gettext_lazy("Action"),
    "recent": gettext_lazy("Recent"),
}


def search(request: Asker, cluster: Cluster, text: str) -> SearchResult:
    """Matches of the text, best match first; at most ENTRIES_OF_KIND_MAX per kind."""
    text = text.strip()[:TEXT_CHARS_MAX]
    own = [*_actions(request, cluster), *_pages(request, cluster)]
    if not text:
        recent = [
            Entry("recent", item.title, item.url, item.note) for item in recent_items(request)
        ]
        return SearchResult((*recent, *own))
    entries: list[Entry] = []
    failures: tuple[BrokerFailure, ...] = ()
    trouble = ""
    try:
        answer = cluster.ask(names)
        failures = answer.failures
        for kind, resource, view, known in (
            ("topic", "topics", "topics:detail", answer.value.topics),
            ("group", "groups", "groups:detail", answer.value.groups),
            ("broker", "clusters", "clusters:broker", answer.value.brokers),
        ):
            test = readable_names(request.user, resource, cluster.name)
            entries += _named(kind, [*filter(test, known)], text, cluster, view, kind)
        test = readable_names(request.user, "messages", cluster.name)
        entries += _about_topic(request, cluster, [*filter(test, answer.value.topics)], text)
        if is_exact_reference(text):
            entries = [*_messages(cluster, text, test), *entries]
    except GatewayError as lost:
        trouble = str(lost.detail)
    entries += [entry for entry in own if matches(entry.title, text)]
    find_url = reverse("message:find", kwargs={"cluster": cluster.name})
    key = _("Find messages with ID or key “{text}”").format(text=text)
    entries.append(Entry("message", key, f"{find_url}?{urlencode({'q': text})}"))
    return SearchResult(tuple(entries), failures, trouble)


def matches(name: str, text: str) -> bool:
    """True when every word of the text is part of the name, ignoring case."""
    lower = name.lower()
    return all(word in lower for word in text.lower().split())


def best(candidates: Iterable[str], text: str) -> list[str]:
    """Matching names: exact match first, then names with the text as prefix, then shorter names."""
    lower = text.lower()

    def rank(name: str) -> tuple[bool, bool, int, str]:
        own = name.lower()
        return own != lower, not own.startswith(lower), len(name), name

    return sorted((name for name in candidates if matches(name, text)), key=rank)


def _named(
    kind: str, candidates: Sequence[str], text: str, cluster: Cluster, view: str, argument: str
) -> list[Entry]:
    return [
        Entry(kind, name, reverse(view, kwargs={"cluster": cluster.name, argument: name}))
        for name in best(candidates, text)[:ENTRIES_OF_KIND_MAX]
    ]


def _about_topic(request: Asker, cluster: Cluster, topics: Sequence[str], text: str) -> list[Entry]:
    """Actions for the best matching topic."""
    for topic in best(topics, text)[:1]:
        address = _address(cluster, urlencode({"topic": topic}))
        entries = [
            Entry("action", _("Messages of {topic}").format(topic=topic), address("message:list")),
            Entry("action", _("Live tail of {topic}").format(topic=topic), address("message:tail")),
        ]
        if may(request.user, Need.WRITE, Target("messages", cluster.name, topic)):
            title = _("Send a message to {topic}").format(topic=topic)
            entries.append(Entry("action", title, address("message:send")))
        return entries
    return []


def _messages(cluster: Cluster, text: str, test: Callable[[str], bool]) -> list[Entry]:
    refs = cluster.ask(find, text).value.refs[:ENTRIES_OF_KIND_MAX]
    return [
        Entry(
            "message",
            ref.message.msg_id,
            reverse(
                "message:detail",
                kwargs={"cluster": cluster.name, "offset_msg_id": ref.message.offset_msg_id},
            ),
            f"{ref.message.topic} · {ref.broker.name}:{ref.message.queue_id}"
            f":{ref.message.queue_offset}",
        )
        for ref in refs
        if test(ref.message.topic)
    ]


def _actions(request: Asker, cluster: Cluster) -> list[Entry]:
    address = _address(cluster)
    entries = [
        Entry("action", _("Start a live tail"), address("message:tail")),
        Entry("action", _("Saved views"), address("search:saved")),
    ]
    offered = [
        ("messages", _("Send a message"), "message:send"),
        ("topics", _("Create a topic"), "topics:create"),
        ("groups", _("Create a group"), "groups:create"),
    ]
    entries += [
        Entry("action", title, address(view))
        for resource, title, view in offered
        if may(request.user, Need.WRITE, Target(resource, cluster.name, Scope.SOME))
    ]
    return entries


def _pages(request: Asker, cluster: Cluster) -> list[Entry]:
    starts: list[tuple[Any, str | None]] = [
        (area.title, area.start_url(cluster.name))
        for area in areas()
        if area.in_navigation and not area.parent and may_enter(request.user, area, cluster.name)
    ]
    return [Entry("page", str(title), url) for title, url in starts if url]


def _address(cluster: Cluster, query: str = "") -> Callable[[str], str]:
    def of(view: str) -> str:
        url = reverse(view, kwargs={"cluster": cluster.name})
        return f"{url}?{query}" if query else url

    return of
