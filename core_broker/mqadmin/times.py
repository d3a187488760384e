"""Timestamps in the formats of RocketMQ's mqadmin, in local time."""

import re
from datetime import datetime

_WRITTEN = re.compile(r"\d{4}-\d{2}-\d{2}#\d{2}:\d{2}:\d{2}:\d{3}", re.ASCII)
#: Pseudo timestamp for the end of a queue.
END = -1


class TimestampText(int):
    """A timestamp in milliseconds with the text of the command line in `written`."""

    written: str


def timestamp_with_text(text: str, *, now: bool = False) -> TimestampText | None:
    """Parse a timestamp like ``parse_moment`` and keep the text."""
    moment_ms = parse_moment(text, now=now)
    if moment_ms is None:
        return None
    moment = TimestampText(moment_ms)
    moment.written = text
    return moment


def parse_moment(text: str, *, now: bool = False) -> int | None:
    """Return the milliseconds of ``yyyy-MM-dd#HH:mm:ss:SSS`` or of a number; None for other texts.

    With ``now`` the texts ``now`` and ``-1`` stand for the end of the queue.
    """
    if now and text in {"now", "-1"}:
        return END
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    if not _WRITTEN.fullmatch(text):
        return None
    try:
        local = datetime.strptime(text, "%Y-%m-%d#%H:%M:%S:%f")  # noqa: DTZ007 - local by purpose
        return int(local.timestamp()) * 1000 + local.microsecond // 1000
    except (ValueError, OverflowError):
        return None


def date_time(moment_ms: int) -> str:
    """``2026-11-21 09:05:05``"""
    return _format(moment_ms, "%Y-%m-%d %H:%M:%S")


def date_time_ms(moment_ms: int) -> str:
    """``2026-11-21 09:05:05,493``"""
    return f"{date_time(moment_ms)},{moment_ms % 1000:03d}"


def compact_ms(moment_ms: int) -> str:
    """``20261121090505493``"""
    return f"{_format(moment_ms, '%Y%m%d%H%M%S')}{moment_ms % 1000:03d}"


def _format(moment_ms: int, layout: str) -> str:
    try:
        return datetime.fromtimestamp(moment_ms // 1000).astimezone().strftime(layout)
    except (ValueError, OverflowError, OSError):
        return str(moment_ms)  # out of the calendar's range, for example in a damaged record
