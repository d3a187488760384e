"""Filter of audit rows, with the same parameters for page, export and API."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from console.audit.models import AuditRow, Result

#: Fields matched exactly; `target` is a substring search.
EXACT = ("username", "cluster", "action", "result", "via", "request_id")
TEXT_CHARS_MAX = 255
EPOCH_MS_MAX = 4_102_444_800_000  # 2100-01-01


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filter parameters as entered, and the query set of matching rows."""

    given: dict[str, str]
    rows: Any

    @classmethod
    def read(cls, params: Mapping[str, str]) -> "AuditFilter":
        """Parse the parameters; raises ValidationError with the messages by field."""
        names = (*EXACT, "target", "since", "until")
        given = {name: params.get(name, "").strip()[:TEXT_CHARS_MAX] for name in names}
        given = {name: text.replace("\x00", "") for name, text in given.items() if text}
        if given.get("result", Result.DONE) not in Result.values:
            known = ", ".join(Result.values)
            raise ValidationError({"result": _("Expected one of: %(known)s") % {"known": known}})
        rows = AuditRow.objects.filter(**{name: given[name] for name in EXACT if name in given})
        if target := given.get("target"):
            rows = rows.filter(target__icontains=target)
        if since := given.get("since"):
            rows = rows.filter(at__gte=read_moment("since", since))
        if until := given.get("until"):
            rows = rows.filter(at__lte=read_moment("until", until))
        return cls(given, rows)


def read_moment(field: str, text: str) -> datetime:
    """Parse ISO 8601 or milliseconds since 1970; times without a zone are in the user's zone."""
    if text.isascii() and text.isdigit() and len(text) <= 13 and int(text) <= EPOCH_MS_MAX:
        return datetime.fromtimestamp(int(text) / 1000, UTC)
    try:
        moment = parse_datetime(text)
        if moment is None and len(text) == len("2026-01-31"):
            moment = parse_datetime(f"{text}T00:00")
        if moment is not None and timezone.is_naive(moment):
            moment = timezone.make_aware(moment)
        if moment is not None:
            moment.astimezone(UTC)
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        expected = _("Expected a time such as 2026-01-31T12:00, or milliseconds since 1970.")
        raise ValidationError({field: expected})
    return moment
