"""The exceptions of Gantry, and the meaning of RocketMQ's response codes.

    GantryError
    ├── SettingsError        the operator must change a setting (all problems at once)
    ├── CannotListen         an address or port of the settings cannot be used
    ├── ProtocolError        a peer sent bytes that violate the protocol
    │   └── FilterSyntaxError  a filter expression that does not parse, with the position
    ├── TransportError       a request or its response was lost
    │   ├── ConnectFailed
    │   ├── RequestTimeout
    │   └── ConnectionClosed
    ├── RequestRefused       a peer responded with another code than SUCCESS
    ├── StoreError           the store on disk
    │   ├── StoreCorrupt
    │   ├── StoreLocked
    │   ├── StoreFull
    │   ├── StoreReadOnly
    │   └── TruncationRefused
    └── ClientError          the program misuses the client, for example an illegal topic name

`str(error)` is one full sentence with the cause and the peer. `REFUSALS` is the only table of
RocketMQ's response codes and their meaning; console, REST API and command line show its hints.
"""

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum


class GantryError(Exception):
    """Base class of the exceptions of Gantry."""


class FormattedText(str):
    """A text with its template and values, for programs that translate the template.

    Values may be formatted texts themselves.
    """

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, /, **values: object) -> "FormattedText":
        text = super().__new__(cls, template.format(**values))
        text.template, text.values = template, values
        return text


class FormattedError(GantryError):
    """An error whose text keeps template and values; without values, the text is taken as it is."""

    def __init__(self, text: str, /, **values: object) -> None:
        self.text = FormattedText(text, **values) if values else text
        super().__init__(self.text)


#: Problems of settings in the text of an error; the text counts the others.
PROBLEMS_SHOWN_MAX = 20
#: Characters of a key or value in the text of a problem.
SETTING_CHARS_SHOWN_MAX = 200


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One wrong setting: source, value, and the expected value."""

    key: str
    expected: str
    value: str | None = None
    source: str | None = None
    line: int | None = None
    nearest: str | None = None

    def __str__(self) -> str:
        where = ""
        if self.source is not None:
            where = f"{self.source}:{self.line}: " if self.line is not None else f"{self.source}: "
        value = "" if self.value is None else f" = {_cut(self.value)!r}"
        nearest = "" if self.nearest is None else f" (did you mean {self.nearest}?)"
        return f"{where}{_cut(self.key)}{value}: {self.expected}{nearest}"


class SettingsError(GantryError):
    """The settings cannot be used; `problems` has every wrong setting, the text the first ones."""

    def __init__(self, problems: Sequence[SettingProblem]) -> None:
        self.problems = list(problems)
        lines = [str(problem) for problem in self.problems[:PROBLEMS_SHOWN_MAX]]
        if len(self.problems) > PROBLEMS_SHOWN_MAX:
            lines.append(f"and {len(self.problems) - PROBLEMS_SHOWN_MAX} more problems")
        super().__init__("\n".join(lines))


class CannotListen(GantryError):
    """A server cannot listen on the address of its settings; `key` is the setting of the port."""

    def __init__(self, key: str, address: str, port: int, error: OSError) -> None:
        self.key = key
        self.port = port
        if error.errno == errno.EADDRINUSE:
            sentence = f"Port {port} is in use; stop the process that listens on it or set {key}."
        else:
            reason = error.strerror or str(error)
            sentence = (
                f"Cannot listen on {address} port {port}: {reason}; see bindAddress and {key}."
            )
        super().__init__(sentence)


class ProtocolError(GantryError):
    """A peer sent bytes outside the remoting protocol, or a header field of the wrong type."""


class FilterSyntaxError(ProtocolError):
    """A filter expression does not parse; `position` counts its characters from 0."""

    def __init__(self, message: str, expression: str, position: int) -> None:
        self.position = position
        before = expression[:position]
        line = before.count("\n") + 1
        column = position - (before.rfind("\n") + 1) + 1
        super().__init__(f"{message} at line {line}, column {column}.")


class TransportError(GantryError):
    """A request or its response was lost; the peer may have executed the request."""

    def __init__(self, addr: str, sentence: str) -> None:
        self.addr = addr
        super().__init__(sentence)


class ConnectFailed(TransportError):
    """The address cannot be reached or has no listener; the request was not sent."""

    def __init__(self, addr: str, reason: str = "") -> None:
        super().__init__(addr, f"Cannot connect to {addr}{f': {reason}' if reason else ''}.")


class RequestTimeout(TransportError):
    """No response came in time; the peer may have executed the request."""

    def __init__(self, addr: str, code: int, timeout_ms: int) -> None:
        self.code = code
        self.timeout_ms = timeout_ms
        super().__init__(addr, f"{addr} did not answer {_code_text(code)} within {timeout_ms} ms.")


class ReplyTimeout(TransportError):
    """A request message was stored, but no consumer replied in time."""

    def __init__(self, topic: str, timeout_ms: int) -> None:
        self.topic = topic
        self.timeout_ms = timeout_ms
        super().__init__(
            topic, f"The message was sent to {topic}, but no reply came within {timeout_ms} ms."
        )


class ConnectionClosed(TransportError):
    """The connection was closed before the response came."""

    def __init__(self, addr: str, reason: str = "") -> None:
        detail = f": {reason}" if reason else ""
        super().__init__(addr, f"The connection to {addr} was closed{detail}.")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The meaning of a response code for the sender of the request."""

    name: str
    hint: str
    #: Whether the same request may succeed at another broker, or here after a pause.
    retriable: bool = False
    #: Whether the client should fetch the topic route again.
    route_stale: bool = False


REFUSALS: dict[int, Refusal] = {
    1: Refusal("SYSTEM_ERROR", "The broker failed; its log tells why.", retriable=True),
    2: Refusal("SYSTEM_BUSY", "The broker is overloaded; send more slowly.", retriable=True),
    3: Refusal("REQUEST_CODE_NOT_SUPPORTED", "This version of the server cannot do it."),
    4: Refusal("TRANSACTION_FAILED", "The transaction could not be ended."),
    10: Refusal("FLUSH_DISK_TIMEOUT", "Stored, but the disk did not confirm in time."),
    11: Refusal("SLAVE_NOT_AVAILABLE", "Stored, but no replica is connected."),
    12: Refusal("FLUSH_SLAVE_TIMEOUT", "Stored, but no replica confirmed in time."),
    13: Refusal("MESSAGE_ILLEGAL", "The message is too large or malformed; see maxMessageSize."),
    14: Refusal(
        "SERVICE_NOT_AVAILABLE",
        "The broker does not take messages now: disk full, shutting down, or a replica.",
        retriable=True,
        route_stale=True,
    ),
    15: Refusal("VERSION_NOT_SUPPORTED", "The server is too old or too new for this."),
    16: Refusal(
        "NO_PERMISSION",
        "The permission of the broker, topic or group forbids it.",
        retriable=True,
        route_stale=True,
    ),
    17: Refusal(
        "TOPIC_NOT_EXIST",
        "Create the topic first, or turn on autoCreateTopicEnable.",
        retriable=True,
        route_stale=True,
    ),
    18: Refusal("TOPIC_EXIST_ALREADY", "The topic is already there."),
    19: Refusal("PULL_NOT_FOUND", "No new message yet.", retriable=True),
    20: Refusal("PULL_RETRY_IMMEDIATELY", "Nothing matched here; pull on.", retriable=True),
    21: Refusal("PULL_OFFSET_MOVED", "The offset is outside of the queue."),
    22: Refusal("QUERY_NOT_FOUND", "Nothing is stored under this key."),
    23: Refusal("SUBSCRIPTION_PARSE_FAILED", "The filter expression does not parse."),
    24: Refusal("SUBSCRIPTION_NOT_EXIST", "The group is offline or not subscribed to the topic."),
    25: Refusal("SUBSCRIPTION_NOT_LATEST", "A heartbeat must bring the new subscription."),
    26: Refusal(
        "SUBSCRIPTION_GROUP_NOT_EXIST",
        "Create the group first, or turn on autoCreateSubscriptionGroup.",
    ),
    27: Refusal("FILTER_DATA_NOT_EXIST", "The filter expression is not registered."),
    28: Refusal("FILTER_DATA_NOT_LATEST", "The filter expression is older than the subscription."),
    29: Refusal("INVALID_PARAMETER", "A parameter is out of range."),
    200: Refusal("TRANSACTION_SHOULD_COMMIT", "The transaction should be committed."),
    201: Refusal("TRANSACTION_SHOULD_ROLLBACK", "The transaction should be rolled back."),
    202: Refusal("TRANSACTION_STATE_UNKNOW", "The state of the transaction is unknown."),
    203: Refusal("TRANSACTION_STATE_GROUP_WRONG", "The transaction belongs to another group."),
    204: Refusal("NO_BUYER_ID", "The request lacks a buyer id.", retriable=True),
    205: Refusal("NOT_IN_CURRENT_UNIT", "The request is for another unit.", retriable=True),
    206: Refusal("CONSUMER_NOT_ONLINE", "No consumer of the group is connected to this broker."),
    207: Refusal("CONSUME_MSG_TIMEOUT", "The consumer did not answer in time."),
    208: Refusal("NO_MESSAGE", "There is no message at this offset."),
    209: Refusal("UPDATE_AND_CREATE_ACL_CONFIG_FAILED", "The access rule was not written."),
    210: Refusal("DELETE_ACL_CONFIG_FAILED", "The access rule was not deleted."),
    211: Refusal("UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED", "The white list was not written."),
    212: Refusal("BROKER_DISPATCH_NOT_COMPLETE", "The broker still builds its queues.", True),
    213: Refusal("BROADCAST_CONSUMPTION", "The group consumes by broadcast."),
    215: Refusal("FLOW_CONTROL", "The broker asks to slow down.", retriable=True),
    501: Refusal("NOT_LEADER_FOR_QUEUE", "Another broker leads this queue.", True, True),
    604: Refusal("ILLEGAL_OPERATION", "The broker does not allow it in its present role."),
    1500: Refusal("GO_AWAY", "The broker is shutting down.", retriable=True, route_stale=True),
    2000: Refusal("CONTROLLER_FENCED_MASTER_EPOCH", "The set has a newer master."),
    2001: Refusal("CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH", "The sync-state set is newer."),
    2002: Refusal("CONTROLLER_INVALID_MASTER", "The sender is not the master of its set."),
    2003: Refusal("CONTROLLER_INVALID_REPLICAS", "A broker id is not registered."),
    2004: Refusal("CONTROLLER_MASTER_NOT_AVAILABLE", "No broker of the set can be master now."),
    2005: Refusal("CONTROLLER_INVALID_REQUEST", "The request lacks a field."),
    2006: Refusal("CONTROLLER_BROKER_NOT_ALIVE", "A broker sends no heartbeats."),
    2007: Refusal("CONTROLLER_NOT_LEADER", "Another controller leads; ask it.", retriable=True),
    2008: Refusal("CONTROLLER_BROKER_METADATA_NOT_EXIST", "The broker set is not registered."),
    2009: Refusal("CONTROLLER_INVALID_CLEAN_BROKER_METADATA", "The brokers cannot be removed."),
    2010: Refusal("CONTROLLER_BROKER_NEED_TO_BE_REGISTERED", "The broker is not registered."),
    2011: Refusal("CONTROLLER_MASTER_STILL_EXIST", "The master is alive and stays."),
    2012: Refusal("CONTROLLER_ELECT_MASTER_FAILED", "No broker of the set can be elected."),
    2013: Refusal("CONTROLLER_ALTER_SYNC_STATE_SET_FAILED", "The sync-state set was not changed."),
    2014: Refusal("CONTROLLER_BROKER_ID_INVALID", "The broker id is taken or not the next one."),
}


class RequestRefused(GantryError):
    """A peer responded with another code than SUCCESS.

    Raised by a processor, the error becomes the response; raised by the client, the error carries
    the response.
    """

    def __init__(self, code: int, remark: str = "", addr: str | None = None) -> None:
        self.code = int(code)
        self.remark = remark or ""
        self.addr = addr
        refusal = REFUSALS.get(self.code)
        self.name = refusal.name if refusal else "UNKNOWN"
        self.hint = refusal.hint if refusal else ""
        self.retriable = refusal is not None and refusal.retriable
        self.route_stale = refusal is not None and refusal.route_stale
        text = self.remark.partition("\n")[0].strip() or self.hint
        detail = f": {text}" if text else "."
        super().__init__(f"{addr or 'The server'} refused with {self.name} ({self.code}){detail}")


class StoreError(GantryError):
    """The store on disk cannot execute an operation."""


class StoreCorrupt(StoreError):
    """Bytes on disk are damaged; the store stops instead of serving them."""

    def __init__(self, path: str, offset: int, reason: str) -> None:
        self.path = path
        self.offset = offset
        self.reason = reason
        super().__init__(f"{path} is corrupt at offset {offset}: {reason}.")


class StoreLocked(StoreError):
    """Another process has the store open; `settings` are the settings of the path."""

    def __init__(self, path: str, *settings: str) -> None:
        self.path = path
        names = " or ".join(settings or ("storePathRootDir",))
        super().__init__(f"{path} is in use by another broker; stop it or set another {names}.")


class StoreFull(StoreError):
    """The disk is too full to rebuild the queues and the index of the store."""

    def __init__(self, path: str, held_bytes: int) -> None:
        self.path = path
        super().__init__(
            f"The disk of {path} is full, and more than {held_bytes // 2**20} MiB of consume queues"
            " and index must be rebuilt; free space on the disk and start again."
        )


class StoreReadOnly(StoreError):
    """The store accepts no messages now; stored messages can still be read."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The store accepts no messages now: {reason}.")


class TruncationRefused(StoreError):
    """The commit log may not be truncated to an offset."""

    def __init__(self, offset: int, reason: str) -> None:
        self.offset = offset
        super().__init__(f"The commit log is not truncated to offset {offset}: {reason}.")


class StoreBusy(StoreError):
    """Too many reads are waiting for the disk; a read may be retried later."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"The disk of the store is too slow: {waiting} reads are waiting.")


class ClientError(GantryError):
    """The application called the client with an illegal argument."""


def _code_text(code: int) -> str:
    """Return the number of a request code, with its name when the code is an enum member."""
    return f"{code.name} ({int(code)})" if isinstance(code, IntEnum) else f"request code {code}"


def _cut(text: str) -> str:
    return text if len(text) <= SETTING_CHARS_SHOWN_MAX else text[:SETTING_CHARS_SHOWN_MAX] + "…"
