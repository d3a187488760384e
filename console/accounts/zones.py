"""Times are shown in the zone that the reader chose, else in the console's."""

from collections.abc import Callable
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone


@cache
def zone_names() -> tuple[str, ...]:
    """What may be chosen, in order; old aliases without a region are left out."""
    return ("UTC", *sorted(name for name in available_timezones() if "/" in name))


class TimeZones:
    """Middleware: the zone of whoever is signed in holds for their request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        profile = getattr(request.user, "profile", None)
        name = profile.time_zone if profile is not None else ""
        if name not in zone_names():
            return self.get_response(request)
        with timezone.override(ZoneInfo(name)):
            return self.get_response(request)
