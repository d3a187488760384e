"""Where pages and REST resources of analytics get their answers: one lake per cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from django.utils.translation import gettext_lazy as _

from console.analytics.duck import LakeReader, TooSlowError, reading
from console.analytics.questions import Scope
from console.analytics.ranges import read_range
from console.gateway import GatewayError
from console.jobs.places import lake_of
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


def read_scope(params: Mapping[str, str], now_ms: int) -> Scope:
    """Range, topic and group of a query string; raises ValueError when the range is none."""
    return Scope(
        read_range(params, now_ms),
        params.get("topic", "")[:NAME_CHARS_MAX] or None,
        params.get("group", "")[:NAME_CHARS_MAX] or None,
    )


@contextmanager
def asking(cluster: str) -> Iterator[LakeReader]:
    """A reader of the cluster's lake as it was last committed; its errors as the console's own."""
    lake = Lake(lake_of(cluster))
    try:
        with reading(lake, lake.snapshot()) as reader:
            yield reader
    except LakeError as error:
        raise LakeUnreadable(
            str(error),
            hint=_("Move the folder away; the next job reads again what the broker still has."),
        ) from error
    except TooSlowError as error:
        raise QueryTooSlow(str(error), hint=_("Choose a shorter time range.")) from error
