"""Audit rows of refused requests: receives the signal `console.frame.access.access_denied`."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from console.audit.recording import facts_of, write_row
from console.frame.access import Need

#: Parts of an address that name what a request is about; the last one that is there counts.
TARGETS = ("broker", "topic", "group", "client", "number", "offset_msg_id", "user", "name")


def record_denial(request: HttpRequest, need: Need, **_signal: Any) -> None:
    """Keep a row of a refused request, under the action that the request asked for."""
    match = request.resolver_match
    arguments: Mapping[str, Any] = match.kwargs if match else {}
    named = [str(arguments[part]) for part in TARGETS if part in arguments]
    write_row(
        action_of(request),
        "denied",
        cluster=str(arguments.get("cluster", ""))[:64],
        target=named[-1] if named else "",
        reason=f"needs {need.value}",
        **facts_of(request),
    )


def action_of(request: HttpRequest) -> str:
    """The name of the act: what the view says in `actions`, else its method and its route."""
    match = request.resolver_match
    method = (request.method or "").lower()
    if match is None:
        return method
    view = getattr(match.func, "view_class", None) or getattr(match.func, "cls", None)
    actions: Mapping[str, str] = getattr(view, "actions", {})
    return actions.get(method, f"{method} {match.view_name}")
