"""The document of definitions: objects by kind and name. Pure.

    format: gantry/definitions/1
    topics:
      orders: {order: false, perm: 6, readQueueNums: 8, writeQueueNums: 8}
    groups:
      billing:
        brokers:
          broker-a: {retryMaxTimes: 16, …}
          broker-b: {retryMaxTimes: 3, …}
    users:
      alice: {userStatus: enable, userType: Normal}
    acls:
      User:alice:
        Custom:
          - {actions: [Pub, Sub], decision: Allow, resource: "Topic:orders"}

Fields have RocketMQ's names. An object without `brokers` is equal on all masters; a field that a
document leaves out keeps each broker's value. Secrets are never written: `password` of a user is
read for users that do not exist yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core_broker.errors import FormattedError, FormattedText

FORMAT: Final = "gantry/definitions/1"
#: Key of an object that is equal on all brokers, in `Placement`.
EVERYWHERE: Final = ""
#: Maximum size of a document, bytes.
DOCUMENT_BYTES_MAX: Final = 4 * 1024 * 1024
#: Maximum number of objects of a document.
OBJECTS_MAX: Final = 50_000
QUEUES_MAX: Final = 65_536
RETRIES_MAX: Final = 10_000
POLICIES: Final = ("Custom", "Default")
PASSWORD: Final = "password"  # noqa: S105 -- the name of the key

#: Fields of an object, of a list the entries by policy.
Fields = Mapping[str, Any]
#: Fields by broker name, or by EVERYWHERE.
Placement = Mapping[str, Fields]


class DefinitionsError(FormattedError):
    """The document cannot be used. The text begins with the line where one is known."""


@dataclass(frozen=True, slots=True)
class Number:
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Word:
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """true or false."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that is read and never written."""


FieldType = Number | Word | Switch | Secret

KINDS: Final[Mapping[str, Mapping[str, FieldType]]] = {
    "topics": {
        "order": Switch(),
        "perm": Number(0, 7),
        "readQueueNums": Number(1, QUEUES_MAX),
        "writeQueueNums": Number(1, QUEUES_MAX),
    },
    "groups": {
        "brokerId": Number(0, 2**31 - 1),
        "consumeBroadcastEnable": Switch(),
        "consumeEnable": Switch(),
        "consumeFromMinEnable": Switch(),
        "notifyConsumerIdsChangedEnable": Switch(),
        "retryMaxTimes": Number(-1, RETRIES_MAX),
        "retryQueueNums": Number(0, QUEUES_MAX),
        "whichBrokerWhenConsumeSlowly": Number(0, 2**31 - 1),
    },
    "users": {
        PASSWORD: Secret(),
        "userStatus": Word(("enable", "disable")),
        "userType": Word(("Super", "Normal")),
    },
    "acls": {},
}
#: Fields of an entry of an access control list.
ENTRY_FIELDS: Final = ("actions", "decision", "resource", "sourceIps")


@dataclass(slots=True)
class Document:
    """Objects by kind and name. `more` has the sections of other programs, as plain values
    and, to be written, blocks; `left_out` has the reason of each kind that was not readable."""

    objects: dict[str, dict[str, Placement]] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """One sentence per reason, with the kinds that are left out."""
        reasons = dict.fromkeys(self.left_out.values())
        return [
            FormattedText(
                "{kinds} left out: {reason}",
                kinds=", ".join(kind for kind, why in self.left_out.items() if why == reason),
                reason=reason,
            )
            for reason in reasons
        ]

    @property
    def count(self) -> int:
        return sum(len(objects) for objects in self.objects.values())


def placed(by_broker: Mapping[str, Fields], brokers: int) -> Placement:
    """The shortest placement: EVERYWHERE when all of the cluster's brokers have equal fields."""
    values = list(by_broker.values())
    if len(values) == brokers and all(value == values[0] for value in values):
        return {EVERYWHERE: values[0]}
    return dict(sorted(by_broker.items()))
