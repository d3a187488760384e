"""Options of the data source `rocketmq`, parsed from Spark's option strings. Pure."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from core_broker.client.subscription import build_subscription
from core_broker.errors import ClientError
from core_broker.message.topics import TOOLS_CONSUMER_GROUP
from spark_jobs.sources.connection import CONNECTION_OPTION_NAMES, Connection, check_key_pair
from spark_jobs.sources.offsets import EARLIEST, LATEST, Offsets, parse_offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(Connection):
    """Options of a read. Picklable: created on the driver, used in every worker."""

    #: `topic`. Required.
    topic: str
    #: `startingOffsets`: earliest (default), latest, or JSON by broker and queue.
    starting_offsets: Offsets | int = EARLIEST
    #: `endingOffsets`: latest (default) or JSON; batch reads only.
    ending_offsets: Offsets | int = LATEST
    #: `startingTimestamp`: first store time to read, in place of startingOffsets. Milliseconds
    #: since 1970, or ISO 8601 like 2026-11-05T13:00:00Z; UTC without a zone.
    starting_ms: int | None = None
    #: `endingTimestamp`: exclusive end of the store times, in place of endingOffsets; batch reads
    #: only.
    ending_ms: int | None = None
    #: `tags`: `A || B` reads only messages with one of the tags; offsets count all messages.
    tags: str = "*"
    #: `group`: the consumer group named in pulls; its offsets never change. The default is a system
    #: group that every broker has.
    group: str = TOOLS_CONSUMER_GROUP
    #: `maxRowsPerPartition`: maximum queue range of one task.
    rows_per_partition_max: int = 100_000
    #: `maxRowsPerBatch`: maximum rows of a micro-batch.
    rows_per_batch_max: int = 1_000_000
    #: `columns`: names separated by commas; by default all columns. Fewer columns read faster.
    columns: tuple[str, ...] = ()
    #: `failOnDataLoss`: whether expired messages raise an error; false continues without them.
    fail_on_data_loss: bool = True
    #: `maxRowsPerSecond`: maximum read rate of one task; 0 means unlimited.
    rows_per_second_max: int = 0


OPTION_NAMES: Final = {
    **CONNECTION_OPTION_NAMES,
    "topic": "topic",
    "startingOffsets": "starting_offsets",
    "endingOffsets": "ending_offsets",
    "startingTimestamp": "starting_ms",
    "endingTimestamp": "ending_ms",
    "tags": "tags",
    "group": "group",
    "maxRowsPerPartition": "rows_per_partition_max",
    "maxRowsPerBatch": "rows_per_batch_max",
    "columns": "columns",
    "failOnDataLoss": "fail_on_data_loss",
    "maxRowsPerSecond": "rows_per_second_max",
}
_ONE_OF: Final = (
    ("startingOffsets", "startingTimestamp"),
    ("endingOffsets", "endingTimestamp"),
)
#: Maximum timestamp, ms: the end of the year 9999.
TIME_MS_MAX: Final = 253_402_300_799_999
TAGS_CHARS_MAX: Final = 4096


def read_options(raw_options: Mapping[str, str], known_columns: Iterable[str]) -> ReadOptions:
    """Check and convert the options; a ClientError names the first wrong option and the expected
    value.

    Option names are case-insensitive, as in all of Spark.
    """
    columns = tuple(known_columns)
    texts = checked_names("rocketmq", raw_options, OPTION_NAMES)
    values = {OPTION_NAMES[key]: _value(key, text, columns) for key, text in texts.items()}
    for required in ("namesrv", "topic"):
        if not values.get(required):
            raise ClientError(f"The data source rocketmq needs the option {required}.")
    for one, other in _ONE_OF:
        if one in texts and other in texts:
            raise ClientError(f"Give {one} or {other}, not both.")
    check_key_pair(texts)
    options = ReadOptions(**values)  # type: ignore[arg-type]
    begin, end = options.starting_ms, options.ending_ms
    if begin is not None and end is not None and end < begin:
        raise ClientError("endingTimestamp lies before startingTimestamp.")
    return options


def checked_names(
    source: str, raw_options: Mapping[str, str], names: Iterable[str]
) -> dict[str, str]:
    """The options under their documented names; raises ClientError for unknown names."""
    by_lower = {key.lower(): key for key in names}
    texts = {}
    for name, text in raw_options.items():
        key = by_lower.get(name.lower())
        if key is None:
            near = difflib.get_close_matches(name.lower(), by_lower, n=1)
            hint = f" Did you mean {by_lower[near[0]]}?" if near else ""
            raise ClientError(f"The data source {source} has no option {name[:80]}.{hint}")
        texts[key] = text
    return texts


def _value(key: str, text: str, known_columns: tuple[str, ...]) -> object:
    if key in {"startingOffsets", "endingOffsets"}:
        return parse_offsets(key, text)
    if key == "columns":
        return column_names(text, known_columns)
    return _READERS.get(key, number_or_text)(key, text)


def number_or_text(key: str, text: str) -> int | str:
    """The value of a maximum or a time in ms; of any other option the text."""
    is_number = key.startswith("max") or key.endswith("Ms")
    return positive(key, text) if is_number else text.strip()


def column_names(text: str, known_columns: tuple[str, ...]) -> tuple[str, ...]:
    """The value of `columns`: names separated by commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in known_columns]
    if unknown or not names:
        raise ClientError(
            f"columns holds {', '.join(unknown)[:200] or 'nothing'}; "
            f"there are {', '.join(known_columns)}."
        )
    if len(set(names)) < len(names):
        raise ClientError("columns holds a name twice.")
    return names


def flag(key: str, text: str) -> bool:
    """The value of a boolean option."""
    if text.strip().lower() not in {"true", "false"}:
        raise ClientError(f"{key} must be true or false, not {text[:40]!r}.")
    return text.strip().lower() == "true"


def positive(key: str, text: str) -> int:
    """The value of an option with a positive number."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 12 and 0 < int(digits) < 2**31):
        raise ClientError(f"{key} must be a number from 1 to {2**31 - 1}, not {text[:40]!r}.")
    return int(digits)


def time_ms(key: str, text: str) -> int:
    """The value of a time option."""
    value = text.strip()
    if value.isascii() and value.isdigit():
        moment = int(value) if len(value) < 16 else TIME_MS_MAX + 1
    else:
        try:
            parsed = datetime.fromisoformat(value)
            zoned = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
            moment = int(zoned.timestamp() * 1000)
        except (ValueError, OverflowError):
            moment = -1
    if not 0 <= moment <= TIME_MS_MAX:
        raise ClientError(
            f"{key} must be milliseconds since 1970 or a time like 2026-11-05T13:00:00Z, "
            f"not {text[:40]!r}."
        )
    return moment


def _tags(key: str, text: str) -> str:
    if len(text) > TAGS_CHARS_MAX:
        raise ClientError(f"{key} is longer than {TAGS_CHARS_MAX} characters.")
    build_subscription("any", text, version=0)  # raises ClientError for an empty expression
    return text.strip() or "*"


_READERS: Final[Mapping[str, Callable[[str, str], object]]] = {
    "failOnDataLoss": flag,
    "startingTimestamp": time_ms,
    "endingTimestamp": time_ms,
    "tags": _tags,
}
