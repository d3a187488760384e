"""Options of the data source `rocketmq`, read from the texts that Spark hands over. Pure."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from core_broker.errors import ClientError
from core_broker.message.topics import TOOLS_CONSUMER_GROUP
from spark_jobs.offsets import EARLIEST, LATEST, Offsets, parse_offsets


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read, and how. Picklable: planned on the driver, used in every worker."""

    namesrv: str
    """`namesrv`: name server addresses, `host:port;host:port`. Required."""
    topic: str
    """`topic`. Required."""
    starting_offsets: Offsets | int = EARLIEST
    """`startingOffsets`: earliest (default), latest, or JSON by broker and queue."""
    ending_offsets: Offsets | int = LATEST
    """`endingOffsets`: latest (default) or JSON; batch reads only."""
    group: str = TOOLS_CONSUMER_GROUP
    """`group`: the consumer group named in pulls; its offsets are never touched. By default a
    system group that every broker has."""
    rows_per_partition_max: int = 100_000
    """`maxRowsPerPartition`: a longer queue range is read by several tasks."""
    rows_per_batch_max: int = 1_000_000
    """`maxRowsPerBatch`: the most one micro-batch of a stream takes."""
    columns: tuple[str, ...] = ()
    """`columns`: names separated by commas; all when absent. A narrow read is a faster one."""
    fail_on_data_loss: bool = True
    """`failOnDataLoss`: whether to fail when asked-for messages are gone; else go on without."""
    request_timeout_ms: int = 5000
    """`requestTimeoutMs`: how long one question may take."""
    retry_timeout_ms: int = 60_000
    """`retryTimeoutMs`: how long to try again when a broker does not answer."""


OPTION_NAMES: Final = {
    "namesrv": "namesrv",
    "topic": "topic",
    "startingOffsets": "starting_offsets",
    "endingOffsets": "ending_offsets",
    "group": "group",
    "maxRowsPerPartition": "rows_per_partition_max",
    "maxRowsPerBatch": "rows_per_batch_max",
    "columns": "columns",
    "failOnDataLoss": "fail_on_data_loss",
    "requestTimeoutMs": "request_timeout_ms",
    "retryTimeoutMs": "retry_timeout_ms",
}


def read_options(given: Mapping[str, str], known_columns: Iterable[str]) -> ReadOptions:
    """Check and convert; a ClientError names the first wrong option and what was expected.

    Names of options are matched without regard to case, as everywhere in Spark.
    """
    by_lower = {key.lower(): key for key in OPTION_NAMES}
    values: dict[str, object] = {}
    for name, text in given.items():
        key = by_lower.get(name.lower())
        if key is None:
            near = difflib.get_close_matches(name.lower(), by_lower, n=1)
            hint = f" Did you mean {by_lower[near[0]]}?" if near else ""
            raise ClientError(f"The data source rocketmq has no option {name}.{hint}")
        values[OPTION_NAMES[key]] = _value(key, text, tuple(known_columns))
    for required in ("namesrv", "topic"):
        if not values.get(required):
            raise ClientError(f"The data source rocketmq needs the option {required}.")
    return ReadOptions(**values)  # type: ignore[arg-type]


def _value(key: str, text: str, known_columns: tuple[str, ...]) -> object:
    if key in {"startingOffsets", "endingOffsets"}:
        return parse_offsets(key, text)
    if key == "columns":
        return _columns(text, known_columns)
    if key == "failOnDataLoss":
        return _flag(key, text)
    if key.startswith("max") or key.endswith("Ms"):
        return _positive(key, text)
    return text.strip()


def _columns(text: str, known_columns: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in known_columns]
    if unknown or not names:
        raise ClientError(
            f"columns holds {', '.join(unknown) or 'nothing'}; "
            f"there are {', '.join(known_columns)}."
        )
    return names


def _flag(key: str, text: str) -> bool:
    if text.strip().lower() not in {"true", "false"}:
        raise ClientError(f"{key} must be true or false, not {text!r}.")
    return text.strip().lower() == "true"


def _positive(key: str, text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits) < 2**31):
        raise ClientError(f"{key} must be a number from 1 to {2**31 - 1}, not {text[:40]!r}.")
    return int(digits)
