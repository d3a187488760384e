"""Options of writes to the data source `rocketmq`, parsed from Spark's option strings. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core_broker.errors import ClientError
from core_broker.limits import FRAME_BYTES_MAX, MESSAGE_BYTES_MAX
from core_broker.message.topics import validate_group, validate_topic
from spark_jobs.sources.connection import CONNECTION_OPTION_NAMES, Connection, check_key_pair
from spark_jobs.sources.options import checked_names, flag, number_or_text

#: Maximum of `maxRequestsInFlight`.
REQUESTS_IN_FLIGHT_MAX: Final = 256
#: Options that Spark adds to a streaming write; the sink ignores them.
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(Connection):
    """Options of a write. Picklable: created on the driver, used in every worker."""

    #: `topic`: the topic of every row. Without the option, the column `topic` names the topic.
    topic: str = ""
    #: `group`: the producer group.
    group: str = "spark-sink"
    #: `orderingColumn`: rows of a task with equal values go to one queue, in the order of the rows.
    ordering_column: str = ""
    #: `dropReservedProperties`: whether properties reserved by RocketMQ are left out; false raises
    #: an error.
    drop_reserved: bool = False
    #: `maxMessageBytes`: maximum size of a body, bytes; the broker's limit is maxMessageSize.
    message_bytes_max: int = MESSAGE_BYTES_MAX
    #: `maxRequestBytes`: maximum size of a request with several messages, bytes.
    request_bytes_max: int = 256 * 1024
    #: `maxRequestsInFlight`: maximum number of concurrent requests of one task.
    requests_in_flight_max: int = 8


WRITE_OPTION_NAMES: Final = {
    **CONNECTION_OPTION_NAMES,
    "topic": "topic",
    "group": "group",
    "orderingColumn": "ordering_column",
    "dropReservedProperties": "drop_reserved",
    "maxMessageBytes": "message_bytes_max",
    "maxRequestBytes": "request_bytes_max",
    "maxRequestsInFlight": "requests_in_flight_max",
}


def write_options(raw_options: Mapping[str, str]) -> WriteOptions:
    """Check and convert the options; a ClientError names the first wrong option and the expected
    value."""
    given = {name: text for name, text in raw_options.items() if name.lower() not in _OF_SPARK}
    texts = checked_names("rocketmq", given, WRITE_OPTION_NAMES)
    values = {WRITE_OPTION_NAMES[key]: _value(key, text) for key, text in texts.items()}
    if not values.get("namesrv"):
        raise ClientError("A write to the data source rocketmq needs the option namesrv.")
    check_key_pair(texts)
    options = WriteOptions(**values)  # type: ignore[arg-type]
    _check_name("topic", options.topic)
    _check_name("group", options.group)
    if options.message_bytes_max > FRAME_BYTES_MAX:
        raise ClientError(f"maxMessageBytes must be at most {FRAME_BYTES_MAX}.")
    if options.request_bytes_max > options.message_bytes_max:
        raise ClientError(
            f"maxRequestBytes must be at most maxMessageBytes, {options.message_bytes_max}: a "
            "broker checks a request with several messages like one message."
        )
    if options.requests_in_flight_max > REQUESTS_IN_FLIGHT_MAX:
        raise ClientError(f"maxRequestsInFlight must be at most {REQUESTS_IN_FLIGHT_MAX}.")
    return options


def _check_name(key: str, name: str) -> None:
    try:
        if key == "group":
            validate_group(name)
        elif name:
            validate_topic(name)
    except ClientError as error:
        raise ClientError(f"{key} holds {name[:80]!r}: {error}") from None


def _value(key: str, text: str) -> object:
    return (flag if key == "dropReservedProperties" else number_or_text)(key, text)
