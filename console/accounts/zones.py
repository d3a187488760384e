"""Time zone of displayed times: the user's zone, else the console's zone."""

from collections.abc import Callable
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone


@cache
def zone_names() -> tuple[str, ...]:
    """Return the selectable zones in order, without old aliases that have no region."""
    return ("UTC", *sorted(name for name in available_timezones() if "/" in name))


class TimeZones:
    """Middleware: activates the signed-in user's time zone for the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        profile = getattr(request.user, "profile", None)
        name = profile.time_zone if profile is not None else ""
        if name not in zone_names():
            return self.get_response(request)
        with timezone.override(ZoneInfo(name)):
            return self.get_response(request)
