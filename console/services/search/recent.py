"""Recently viewed items: kept in the user's session, shown by the search box."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.urls import Resolver404, get_script_prefix, resolve
from django.utils.translation import gettext_lazy
from rest_framework.request import Request

from console.frame.access import may, need_of
from console.frame.own_disks import own_disks
from console.frame.targets import target_of

SESSION_KEY = "recent"
ITEMS_MAX = 10
URL_CHARS_MAX = 2_000
TITLE_CHARS_MAX = 120

#: Detail pages by view name: URL argument or query parameter with the item name, and label.
_PAGES = {
    "topics:detail": ("topic", gettext_lazy("Topic")),
    "groups:detail": ("group", gettext_lazy("Group")),
    "message:detail": ("offset_msg_id", gettext_lazy("Message")),
    "message:list": ("topic", gettext_lazy("Messages")),
    "message:tail": ("topic", gettext_lazy("Live tail")),
    "deadletters:group": ("group", gettext_lazy("Dead letters")),
    "traces:journey": ("msg_id", gettext_lazy("Journey")),
    "clusters:broker": ("broker", gettext_lazy("Broker")),
}


@dataclass(frozen=True, slots=True)
class RecentItem:
    title: str
    url: str
    note: str


def recent_items(request: HttpRequest | Request) -> list[RecentItem]:
    """Recently viewed detail pages that the user may still open, most recent page first."""
    items: list[dict[str, str]] = _session(request).get(SESSION_KEY, [])
    return [
        RecentItem(item["title"], item["url"], str(_PAGES[item["view"]][1]))
        for item in items
        if item["view"] in _PAGES and _may_open(request.user, item["url"])
    ]


def _may_open(user: Any, url: str) -> bool:
    """Whether the access check admits the user to a stored address; roles may have changed."""
    path, _mark, query = url.partition("?")
    try:
        view, _args, kwargs = resolve(unquote(f"/{path.removeprefix(get_script_prefix())}"))
    except Resolver404:
        return False
    return may(user, need_of(view, "GET"), target_of(view, kwargs, QueryDict(query)))


class RecentItemsMiddleware:
    """Records successful full-page views of detail pages, unless a disk of the console is full."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        match = request.resolver_match
        if (
            match is not None
            and match.view_name in _PAGES
            and request.method == "GET"
            and response.status_code == 200
            and not getattr(request, "htmx", False)
        ):
            name = _PAGES[match.view_name][0]
            title = match.kwargs.get(name) or request.GET.get(name, "")
            url = request.get_full_path()
            if title and len(url) <= URL_CHARS_MAX and not own_disks().is_full:
                _remember(_session(request), match.view_name, title[:TITLE_CHARS_MAX], url)
        return response


def _remember(session: Any, view: str, title: str, url: str) -> None:
    before = session.get(SESSION_KEY, [])
    item = {"view": view, "title": title, "url": url}
    if before[:1] == [item]:
        return
    same = (view, title)
    others = [other for other in before if (other["view"], other["title"]) != same]
    session[SESSION_KEY] = [item, *others][:ITEMS_MAX]


def _session(request: HttpRequest | Request) -> Any:
    """The session; empty for requests with an API token."""
    return getattr(request, "session", {})
