"""Properties of a message for people: the application's own first, then RocketMQ's with a word."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from console.gateway.dead_letters.resend import PROPERTY_RESENT_FROM
from core_broker.message import properties as names

_MEANINGS: dict[str, Any] = {
    names.PROPERTY_KEYS: _("Keys it can be found by"),
    names.PROPERTY_TAGS: _("Tag that consumers filter by"),
    names.PROPERTY_UNIQ_KEY: _("Message id, made by the producer"),
    names.PROPERTY_WAIT_STORE_MSG_OK: _("Whether the producer waits until it is stored safely"),
    names.PROPERTY_DELAY_TIME_LEVEL: _("Delay level: which of the broker's delays it waited for"),
    names.PROPERTY_RETRY_TOPIC: _("Topic it was sent to at first"),
    names.PROPERTY_REAL_TOPIC: _("Topic it was on its way to when it was put aside"),
    names.PROPERTY_REAL_QUEUE_ID: _("Queue of that topic"),
    names.PROPERTY_TRANSACTION_PREPARED: _("Half message of a transaction"),
    names.PROPERTY_PRODUCER_GROUP: _("Producer group that is asked about the transaction"),
    names.PROPERTY_TRANSACTION_CHECK_TIMES: _("How often the transaction was asked about"),
    names.PROPERTY_TRANSACTION_ID: _("Transaction id"),
    names.PROPERTY_ORIGIN_MESSAGE_ID: _("Offset message id of the first copy"),
    names.PROPERTY_RECONSUME_TIME: _("Failed deliveries so far"),
    names.PROPERTY_MAX_RECONSUME_TIMES: _("Retries that the consumer allows"),
    names.PROPERTY_MSG_REGION: _("Region of the broker that stored it"),
    names.PROPERTY_TRACE_SWITCH: _("Whether it is traced"),
    names.PROPERTY_CONSUME_START_TIMESTAMP: _("When a listener got it"),
    names.PROPERTY_SHARDING_KEY: _("Key that keeps messages in order"),
    names.PROPERTY_CLUSTER: _("Cluster that stored it"),
    names.PROPERTY_MESSAGE_TYPE: _("Type of the message"),
    names.PROPERTY_CORRELATION_ID: _("Joins a reply to its request"),
    names.PROPERTY_MESSAGE_REPLY_TO_CLIENT: _("Client that waits for the reply"),
    names.PROPERTY_MESSAGE_TTL: _("Milliseconds that the reply is waited for"),
    names.PROPERTY_DLQ_ORIGIN_TOPIC: _("Topic it was sent to at first"),
    names.PROPERTY_DLQ_ORIGIN_MESSAGE_ID: _("Message id of what became a dead letter"),
    PROPERTY_RESENT_FROM: _("Offset message id of the dead letter it was sent again from"),
}


@dataclass(frozen=True, slots=True)
class PropertyRow:
    """One property; `meaning` is empty for the application's own."""

    name: str
    value: str
    meaning: Any


def property_rows(properties: Mapping[str, str]) -> list[PropertyRow]:
    rows = [PropertyRow(name, value, _MEANINGS.get(name, "")) for name, value in properties.items()]
    return sorted(rows, key=lambda row: row.name in _MEANINGS)
