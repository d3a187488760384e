"""Times as RocketMQ's tools read and print them, in the machine's time zone."""

import re
from datetime import datetime

_WRITTEN = re.compile(r"\d{4}-\d{2}-\d{2}#\d{2}:\d{2}:\d{2}:\d{3}", re.ASCII)
#: The time that stands for the end of a queue.
END = -1


class WrittenMoment(int):
    """Milliseconds, which remember how they were written on the command line."""

    written: str


def written_moment(text: str, *, now: bool = False) -> WrittenMoment | None:
    """As ``parse_moment``, with the text kept."""
    moment_ms = parse_moment(text, now=now)
    if moment_ms is None:
        return None
    moment = WrittenMoment(moment_ms)
    moment.written = text
    return moment


def parse_moment(text: str, *, now: bool = False) -> int | None:
    """Milliseconds of ``yyyy-MM-dd#HH:mm:ss:SSS`` or of the number itself; None when it is none.

    ``now`` and -1 mean the end of the queue, where they are allowed.
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
        return str(moment_ms)  # a time that no calendar has, as a damaged record may
