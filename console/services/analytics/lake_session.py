"""Access of pages and REST resources to the trace lake; every cluster has a lake."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.gateway import GatewayError
from console.services.analytics.aggregates import KIND_NUMBERS, Scope
from console.services.analytics.duck import LakeReader, TooBusyError, TooSlowError, reading
from console.services.analytics.ranges import read_range
from console.services.jobs.paths import lake_of
from trace.lake import Lake, LakeError

NAME_CHARS_MAX: Final = 255


class LakeUnreadable(GatewayError):
    status = 500
    kind = "lake-unreadable"
    title = _("The trace lake cannot be read")


class QueryTooSlow(GatewayError):
    status = 504
    kind = "query-too-slow"
    title = _("The query took too long")


class LakeBusy(GatewayError):
    status = 503
    kind = "lake-busy"
    title = _("Too many concurrent queries")


def read_scope(params: Mapping[str, str], now_ms: int) -> Scope:
    """The scope of a query string. Raises ValueError with a text for the user."""
    kind = params.get("kind", "") or None
    if kind is not None and kind not in KIND_NUMBERS:
        names = ", ".join(KIND_NUMBERS)
        raise ValueError(gettext("The kind must be one of %(names)s.") % {"names": names})
    return Scope(
        read_range(params, now_ms, timezone.get_current_timezone()),
        _name(params.get("topic", "")),
        _name(params.get("group", "")),
        kind,
    )


def _name(text: str) -> str | None:
    return text.replace("\x00", "")[:NAME_CHARS_MAX] or None


@contextmanager
def lake_reader(cluster: str) -> Iterator[LakeReader]:
    """A reader of the last committed snapshot of the lake. Raises GatewayError subclasses."""
    lake = Lake(lake_of(cluster))
    try:
        with reading(lake, lake.snapshot()) as reader:
            yield reader
    except LakeError as error:
        raise LakeUnreadable(
            str(error),
            hint=_(
                "Move the folder away; the next job reads all traces that the broker still stores."
            ),
        ) from error
    except TooBusyError as error:
        raise LakeBusy(str(error), hint=_("Retry in a moment.")) from error
    except TooSlowError as error:
        raise QueryTooSlow(
            str(error),
            hint=_(
                "Choose a shorter time range, or raise CONSOLE_ANALYTICS_SECONDS or "
                "CONSOLE_ANALYTICS_MEMORY_MB."
            ),
        ) from error
