"""Display formats of numbers, sizes, rates, times and permissions. Unknown values are “—”."""

from datetime import UTC, datetime

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

UNKNOWN = "—"


SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def number(value: float | None, decimals: int = 0) -> str:
    """12345 → `12,345`."""
    return UNKNOWN if value is None else f"{value:,.{decimals}f}"


def compact(value: float | None) -> str:
    """12345 → `12.3k`: for tiles, where a tooltip has the exact number."""
    if value is None:
        return UNKNOWN
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            scaled = value / (1e3 if suffix == "k" else limit)
            decimals = 2 if abs(scaled) < 10 else 1 if abs(scaled) < 100 else 0
            return f"{scaled:,.{decimals}f}".removesuffix(".0").removesuffix(".00") + suffix
    return number(value, 0 if float(value).is_integer() else 1)


def rate(value: float | None) -> str:
    """Format a rate per second, with up to two decimals."""
    if value is None:
        return UNKNOWN
    if abs(value) < 10:
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return number(value, 1 if abs(value) < 100 else 0)


def size(value: float | None) -> str:
    """Bytes with binary units: 1536 → `1.5 KiB`."""
    if value is None:
        return UNKNOWN
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TiB"


def percent(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{ratio * 100:.0f} %"


def duration(ms: float | None) -> str:
    """Format a duration in the two largest units: `3 h 12 min`."""
    if ms is None:
        return UNKNOWN
    if ms < SECOND_MS:
        return _("%(count)d ms") % {"count": ms}
    days, rest = divmod(int(ms), DAY_MS)
    hours, rest = divmod(rest, HOUR_MS)
    minutes, rest = divmod(rest, MINUTE_MS)
    seconds = rest // SECOND_MS
    parts = [
        (days, _("%(count)d d")),
        (hours, _("%(count)d h")),
        (minutes, _("%(count)d min")),
        (seconds, _("%(count)d s")),
    ]
    first = next(index for index, (count, _unit) in enumerate(parts) if count)
    return " ".join(unit % {"count": count} for count, unit in parts[first : first + 2] if count)


def latency(ms: float | None) -> str:
    """Format a latency: seconds with a decimal, `1.5 s`; other values as `duration`."""
    if ms is None or not SECOND_MS <= ms < MINUTE_MS - 50:  # not "60.0 s"
        return duration(ms)
    return _("%(seconds)s s") % {"seconds": number(ms / SECOND_MS, 1)}


def ago(then_ms: int | None, now_ms: int) -> str:
    """Format the time since `then_ms` in one unit.

    Two seconds or more in the future read “in …”.
    """
    if then_ms is None:
        return UNKNOWN
    passed = now_ms - then_ms
    if abs(passed) < 2 * SECOND_MS:
        return pgettext("time", "just now")
    for unit_ms, text in _UNITS:
        if abs(passed) >= unit_ms:
            amount = str(text) % {"count": abs(passed) // unit_ms}
            pattern = _("%(amount)s ago") if passed > 0 else _("in %(amount)s")
            return pattern % {"amount": amount}
    raise AssertionError("two seconds are at least one second")


_UNITS = (
    (DAY_MS, gettext_lazy("%(count)d d")),
    (HOUR_MS, gettext_lazy("%(count)d h")),
    (MINUTE_MS, gettext_lazy("%(count)d min")),
    (SECOND_MS, gettext_lazy("%(count)d s")),
)


def exact(ms: int | None) -> str:
    """Date and time with milliseconds and zone, in the console's time zone."""
    if ms is None:
        return UNKNOWN
    try:
        moment = datetime.fromtimestamp(ms / 1000, UTC).astimezone(timezone.get_current_timezone())
    except (OverflowError, ValueError, OSError):
        return str(ms)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03d} {moment:%Z}"
