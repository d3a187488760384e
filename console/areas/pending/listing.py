"""Columns and filters of pending messages, shared by pages, API and export."""

from collections.abc import Iterable

from django.utils.translation import gettext_lazy as _

from console.frame.tables import Column, Columns
from console.gateway.pending.half import HalfMessage

#: Reason why no delayed message can be cancelled.
NO_CANCEL = _(
    "Not available here: brokers cannot take back a message with a delay level. RocketMQ 5.3.2 and "
    "later recall timer messages, and only for the producer with the recall handle."
)

HALF_COLUMNS: Columns[HalfMessage] = Columns(
    Column("born_ms", _("Born at"), lambda half: half.ref.message.born_timestamp),
    Column("name", _("Message ID"), lambda half: half.name),
    Column("topic", _("Topic"), lambda half: half.topic),
    Column("producer_group", _("Producer group"), lambda half: half.producer_group),
    Column(
        "producers",
        _("Producers"),
        lambda half: half.producers,
        numeric=True,
        hint=_("Connected producers of the group: only they answer a check"),
    ),
    Column("checks", _("Checks"), lambda half: half.checks, numeric=True),
    Column(
        "next_check_ms",
        _("Next check"),
        lambda half: half.next_check_ms,
        hint=_("Earliest time; the broker checks in rounds"),
    ),
    Column("keys", _("Keys")),
    Column("broker", _("Broker"), lambda half: half.ref.broker.name),
)


def passing(halves: Iterable[HalfMessage], search: str) -> list[HalfMessage]:
    """Half messages that match every search word by id, key, topic, producer group or broker."""
    words = search.lower().split()
    return [half for half in halves if not words or _holds(half, words)]


def _holds(half: HalfMessage, words: list[str]) -> bool:
    message = half.ref.message
    parts = (message.msg_id, *message.keys, half.topic, half.producer_group, half.ref.broker.name)
    text = " ".join(parts).lower()
    return all(word in text for word in words)
