"""A broker's runtime table (answer to 28): parse texts to numbers with units, or None.

The keys and their texts are RocketMQ's, 4.9 and 5.x. Rates are "10 s, 1 min, 10 min" averages,
three numbers separated by blanks. Versions before 5 have `brokerVersion` as well.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext_lazy as _

from core_broker.client.admin.inventory import unmeasured_keys
from core_broker.remoting.bodies.inventory import (
    GANTRY_REFUSAL_KEY,
    GANTRY_TLS_EXPIRY_KEY,
    GANTRY_TLS_MODE_KEY,
    GANTRY_TODAY_KEY,
    GANTRY_UNMEASURED_KEY,
)

#: `percentile` is a time in ms with decimals, `running` the time since the start in ms, `capacity`
#: total and free bytes.
Kind = Literal[
    "count",
    "ms",
    "percentile",
    "running",
    "time",
    "bytes",
    "capacity",
    "ratio",
    "rates",
    "text",
]

#: What the totals of today count from: the last midnight in the broker's time zone, or the start.
TodayBegins = Literal["midnight", "start"]

CertificateState = Literal["valid", "expires-soon", "expired"]

#: Time before the end of a certificate's validity from which the console warns, ms; the first
#: warning in the broker's log has the same time.
CERTIFICATE_WARNING_MS = 30 * 86_400_000
#: RocketMQ's number of free buffers of a transient store pool that is off.
NO_POOL = 2**31 - 1
_SIZE_UNITS = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5, "EiB": 6}
_SIZE = re.compile(r"([0-9.]+)\s*([KMGTPE]?i?B)")
#: RocketMQ's text of the time since the start: "[ 0 days, 3 hours, 25 minutes, 45 seconds ]".
_RUNNING = re.compile(r"(\d+) days?, (\d+) hours?, (\d+) minutes?, (\d+) seconds?")
_VERSION = re.compile(r"V?([0-9]+(?:[_.][0-9]+)*)(.*)")


def whole(table: Mapping[str, str], key: str) -> int | None:
    """Return a count; None for RocketMQ's -1, which means unknown."""
    try:
        value = int(table[key])
    except (KeyError, ValueError):
        return None
    return value if value >= 0 else None


def real(table: Mapping[str, str], key: str) -> float | None:
    try:
        value = float(table[key])
    except (KeyError, ValueError):
        return None
    return value if value >= 0 else None


def measured(table: Mapping[str, str], key: str) -> float | None:
    """Return a number; None also for a constant that a Gantry broker sends instead."""
    return None if key in unmeasured_keys(table) else real(table, key)


def running_ms(table: Mapping[str, str]) -> int | None:
    """Return the time since the start, whole seconds in ms."""
    found = _RUNNING.search(table.get("runtime", ""))
    if found is None:
        return None
    days, hours, minutes, seconds = map(int, found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000


def rates(table: Mapping[str, str], key: str) -> tuple[float, float, float] | None:
    """Return the averages over the last ten seconds, minute and ten minutes."""
    try:
        ten_s, minute, ten_min = (float(word) for word in table[key].split())
    except (KeyError, ValueError):
        return None
    return ten_s, minute, ten_min


def today_begins(table: Mapping[str, str]) -> tuple[TodayBegins | None, int | None]:
    """Return the beginning of the totals of today, and its time where known, ms.

    RocketMQ records its totals at midnight in the broker's time zone. Before the first midnight
    the records are 0: the totals of today count from the start then.
    """
    started_ms = whole(table, "bootTimestamp")
    recorded = [whole(table, f"msg{kind}TotalTodayMorning") for kind in ("Put", "Get")]
    if (from_ms := whole(table, GANTRY_TODAY_KEY)) is not None:
        return ("start" if from_ms == started_ms else "midnight"), from_ms
    if any(recorded):
        return "midnight", None
    return ("start", started_ms) if 0 in recorded else (None, None)


def certificate_state(expiry_ms: int, now_ms: int) -> CertificateState:
    """Return whether a certificate is valid, ends within CERTIFICATE_WARNING_MS, or has ended."""
    if expiry_ms <= now_ms:
        return "expired"
    return "expires-soon" if expiry_ms - now_ms <= CERTIFICATE_WARNING_MS else "valid"


def expiring_certificate_ms(table: Mapping[str, str], now_ms: int) -> int | None:
    """Return the end of validity of a certificate that ends soon or has ended; None otherwise.

    Also None for brokers that do not report the end: Apache's, and brokers without a certificate.
    """
    expiry_ms = whole(table, GANTRY_TLS_EXPIRY_KEY)
    if expiry_ms is None or certificate_state(expiry_ms, now_ms) == "valid":
        return None
    return expiry_ms


def newest_rate(table: Mapping[str, str], *keys: str) -> float | None:
    """Return the ten-second average of the first key in the table."""
    found = (rates(table, key) for key in keys)
    return next((averages[0] for averages in found if averages), None)


def capacity(table: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return total and free bytes from "Total : 252.0 GiB, Free : 69.7 GiB."."""
    sizes = [_bytes(match) for match in _SIZE.finditer(table.get("commitLogDirCapacity", ""))]
    return (sizes[0], sizes[1]) if len(sizes) == 2 else (None, None)


def byte_count(text: str) -> int | None:
    """ "1.4 KiB", "1434" or "1434.0" → 1434."""
    if text.isascii() and text.replace(".", "", 1).isdecimal():
        return round(float(text))
    match = _SIZE.fullmatch(text.strip())
    return _bytes(match) if match else None


def _bytes(match: re.Match[str]) -> int:
    unit = match[2] if match[2] in _SIZE_UNITS else match[2].replace("B", "iB")
    return round(float(match[1]) * 1024 ** _SIZE_UNITS.get(unit, 0))


def version(table: Mapping[str, str]) -> str | None:
    """ "V4_9_8" → "4.9.8"; a suffix such as "-SNAPSHOT" stays."""
    match = _VERSION.fullmatch(table.get("brokerVersionDesc", ""))
    return match[1].replace("_", ".") + match[2].replace("_", ".") if match else None


@dataclass(frozen=True, slots=True)
class Detail:
    """A line of the runtime details: a key with its meaning, value and unit.

    A Gantry broker sends a constant under a key that is not `measured`; the value is None.
    """

    key: str
    label: Any
    kind: Kind
    value: Any
    measured: bool = True


@dataclass(frozen=True, slots=True)
class DetailGroup:
    title: Any
    details: tuple[Detail, ...]


#: Labels and kinds of the keys, grouped as on the page. Unlisted keys appear under "Other" as text.
DETAILS: tuple[tuple[Any, tuple[tuple[str, Any, Kind], ...]], ...] = (
    (
        _("Messages"),
        (
            ("msgPutTotalTodayNow", _("Received since start"), "count"),
            ("msgPutTotalTodayMorning", _("Received until last midnight"), "count"),
            ("msgPutTotalYesterdayMorning", _("Received until the midnight before"), "count"),
            ("msgGetTotalTodayNow", _("Delivered since start"), "count"),
            ("msgGetTotalTodayMorning", _("Delivered until last midnight"), "count"),
            ("msgGetTotalYesterdayMorning", _("Delivered until the midnight before"), "count"),
            ("putTps", _("Received per second (10 s, 1 min, 10 min)"), "rates"),
            ("getTransferedTps", _("Delivered per second (10 s, 1 min, 10 min)"), "rates"),
            ("getTransferredTps", _("Delivered per second (10 s, 1 min, 10 min)"), "rates"),
            ("getFoundTps", _("Pulls that found messages per second"), "rates"),
            ("getMissTps", _("Pulls that found nothing per second"), "rates"),
            ("getTotalTps", _("Pulls per second"), "rates"),
            ("putMessageSizeTotal", _("Bytes received"), "bytes"),
            ("putMessageAverageSize", _("Average message size"), "bytes"),
            ("putMessageTimesTotal", _("Messages stored since start"), "count"),
            ("putMessageFailedTimes", _("Messages that could not be stored"), "count"),
        ),
    ),
    (
        _("Storage"),
        (
            ("commitLogDiskRatio", _("Disk used by the commit log's volume"), "ratio"),
            ("consumeQueueDiskRatio", _("Disk used by the consume queues' volume"), "ratio"),
            ("commitLogDirCapacity", _("Commit log volume"), "capacity"),
            ("commitLogMinOffset", _("First byte of the commit log"), "count"),
            ("commitLogMaxOffset", _("End of the commit log"), "count"),
            ("earliestMessageTimeStamp", _("Oldest message"), "time"),
            ("remainHowManyDataToFlush", _("Not yet flushed to disk"), "bytes"),
            ("remainHowManyDataToCommit", _("Not yet committed to the page cache"), "bytes"),
            ("dispatchBehindBytes", _("Not yet in the consume queues"), "bytes"),
            ("dispatchMaxBuffer", _("Largest backlog of dispatching"), "count"),
            ("remainTransientStoreBufferNumbs", _("Free buffers of the store pool"), "count"),
        ),
    ),
    (
        _("Time taken"),
        (
            ("putMessageEntireTimeMax", _("Longest time to store a message"), "ms"),
            ("getMessageEntireTimeMax", _("Longest time to find messages"), "ms"),
            ("putLatency99", _("Storing, 99th percentile"), "percentile"),
            ("putLatency999", _("Storing, 99.9th percentile"), "percentile"),
            ("putMessageDistributeTime", _("Distribution of storing times"), "text"),
            ("pageCacheLockTimeMills", _("Waiting for the store's lock"), "ms"),
            ("sendThreadPoolQueueHeadWaitTimeMills", _("Oldest waiting send"), "ms"),
            ("pullThreadPoolQueueHeadWaitTimeMills", _("Oldest waiting pull"), "ms"),
            ("queryThreadPoolQueueHeadWaitTimeMills", _("Oldest waiting query"), "ms"),
        ),
    ),
    (
        _("Waiting requests"),
        (
            ("sendThreadPoolQueueSize", _("Sends waiting"), "count"),
            ("sendThreadPoolQueueCapacity", _("Sends that may wait"), "count"),
            ("pullThreadPoolQueueSize", _("Pulls waiting"), "count"),
            ("pullThreadPoolQueueCapacity", _("Pulls that may wait"), "count"),
            ("queryThreadPoolQueueSize", _("Queries waiting"), "count"),
            ("queryThreadPoolQueueCapacity", _("Queries that may wait"), "count"),
            ("EndTransactionQueueSize", _("Transaction ends waiting"), "count"),
            ("EndTransactionThreadPoolQueueCapacity", _("Transaction ends that may wait"), "count"),
        ),
    ),
    (
        _("Process"),
        (
            ("brokerVersionDesc", _("Version"), "text"),
            ("brokerVersion", _("Number of the version"), "count"),
            ("bootTimestamp", _("Started"), "time"),
            (GANTRY_TODAY_KEY, _("Totals of today count from"), "time"),
            ("startAcceptSendRequestTimeStamp", _("Accepts messages since"), "time"),
            ("runtime", _("Running for"), "running"),
            ("brokerActive", _("Active"), "text"),
            (GANTRY_REFUSAL_KEY, _("Refuses messages"), "text"),
        ),
    ),
    (
        _("TLS"),
        (
            (GANTRY_TLS_MODE_KEY, _("Mode"), "text"),
            (GANTRY_TLS_EXPIRY_KEY, _("End of the certificate's validity"), "time"),
        ),
    ),
)
DELAY_PREFIX = "scheduleMessageOffset_"
DELAYS = _("Delay levels")
OTHER = _("Other")


def details(table: Mapping[str, str]) -> tuple[DetailGroup, ...]:
    """Return the whole table in groups; keys of later RocketMQ versions come last, unparsed."""
    groups: list[DetailGroup] = []
    known = {GANTRY_UNMEASURED_KEY}
    unmeasured = unmeasured_keys(table)
    for title, lines in DETAILS:
        found = tuple(
            Detail(key, label, kind, None, measured=False)
            if key in unmeasured
            else Detail(key, label, kind, _value(table, key, kind))
            for key, label, kind in lines
            if key in table
        )
        known.update(detail.key for detail in found)
        if found:
            groups.append(DetailGroup(title, found))
    delays = tuple(
        Detail(key, "", "text", _delay_text(table[key]))
        for key in sorted(table, key=_delay_level)
        if key.startswith(DELAY_PREFIX)
    )
    known.update(detail.key for detail in delays)
    rest = tuple(Detail(key, "", "text", table[key]) for key in sorted(table) if key not in known)
    return tuple(
        group
        for group in (*groups, DetailGroup(DELAYS, delays), DetailGroup(OTHER, rest))
        if group.details
    )


def _delay_level(key: str) -> int:
    level = key.removeprefix(DELAY_PREFIX)
    return int(level) if level.isdecimal() else 0


def _delay_text(text: str) -> str:
    """ "8,9" → "8 / 9": delivered offset and end of the level's queue."""
    return " / ".join(part.strip() for part in text.split(","))


def _value(table: Mapping[str, str], key: str, kind: Kind) -> Any:
    if kind in {"count", "ms", "time"}:
        number = whole(table, key)
        if key == "remainTransientStoreBufferNumbs" and number == NO_POOL:
            return None
        return None if kind == "time" and number == 0 else number
    if kind == "running":
        return running_ms(table)
    if kind == "percentile":
        return real(table, key) or None  # 0.00 after a minute without messages
    if kind == "bytes":
        return byte_count(table[key])
    if kind == "capacity":
        total, free = capacity(table)
        return None if total is None else (total, free)
    if kind == "ratio":
        return real(table, key)
    if kind == "rates":
        return rates(table, key)
    return table[key].strip()
