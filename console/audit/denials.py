"""Audit rows of denied requests: receives the signal `console.frame.access.access_denied`."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from console.audit.recording import facts_of, write_row
from console.frame.access import Need
from console.frame.permissions import Target

#: URL arguments that name the target of a request; the last match wins.
TARGETS = ("broker", "topic", "group", "client", "number", "offset_msg_id", "user", "name")


def record_denial(
    request: HttpRequest, need: Need, target: Target, reason: str = "", **_signal: Any
) -> None:
    """Record a denied request under the requested action."""
    match = request.resolver_match
    arguments: Mapping[str, Any] = match.kwargs if match else {}
    named = [str(arguments[part]) for part in TARGETS if part in arguments]
    write_row(
        action_of(request),
        "denied",
        cluster=str(arguments.get("cluster", ""))[:64],
        target=named[-1] if named else "",
        reason=reason or f"needs {target.resource}:{need.value}",
        **facts_of(request),
    )


def action_of(request: HttpRequest) -> str:
    """Return the name of the action: `actions` of the view, else method and route name."""
    match = request.resolver_match
    method = (request.method or "").lower()
    if match is None:
        return method
    view = getattr(match.func, "view_class", None) or getattr(match.func, "cls", None)
    actions: Mapping[str, str] = getattr(view, "actions", {})
    return actions.get(method, f"{method} {match.view_name}")
