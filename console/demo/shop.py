"""The sample shop: topics, groups, messages, and payments that fail. Pure.

orders    ─▶ fulfilment (tags paid and shipped)   ─┐
payments  ─▶ accounting (fails for a lost card)    ├─▶ audit (everything)
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from core_broker.message.model import Message
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig

ORDERS: Final = "orders"
PAYMENTS: Final = "payments"
QUEUES: Final = 4
ORDER_TAGS: Final = ("created", "paid", "shipped")
REGIONS: Final = ("north", "south", "east", "west")
MESSAGES_PER_SECOND: Final = 6
LOST_CARD_EVERY: Final = 25  # payments
# Longer than all retries, so that the payment is dead-lettered; a later resend succeeds.
LOST_FOR_MS: Final = 120_000


class LostCardError(Exception):
    """Accounting cannot book the payment until the card is found."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """One consumer group with subscriptions."""

    group: str
    subscriptions: dict[str, str]
    work_s: tuple[float, float] = (0.001, 0.02)
    retries_max: int = 16


FULFILMENT: Final = Subscriber("fulfilment", {ORDERS: "paid || shipped"})
# Two retries, after 10 and 30 seconds: a refused payment is a dead letter within a minute.
ACCOUNTING: Final = Subscriber("accounting", {PAYMENTS: "*"}, work_s=(0.005, 0.06), retries_max=2)
AUDIT: Final = Subscriber("audit", {ORDERS: "*", PAYMENTS: "*"})
SUBSCRIBERS: Final = (FULFILMENT, ACCOUNTING, AUDIT)


def topics() -> list[TopicConfig]:
    return [
        TopicConfig(topic_name=name, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        for name in (ORDERS, PAYMENTS)
    ]


def groups() -> list[SubscriptionGroupConfig]:
    return [
        SubscriptionGroupConfig(group_name=each.group, retry_max_times=each.retries_max)
        for each in SUBSCRIBERS
    ]


def messages(source: random.Random, now_ms: Callable[[], int]) -> Iterator[Message]:
    """Yield endless messages of orders; each order is created, paid and shipped."""
    payments = 0
    for number in range(1, 1_000_000_000):
        order = f"ORDER-{number:06d}"
        region = source.choice(REGIONS)
        for tag in ORDER_TAGS:
            yield shop_message(ORDERS, tag, order, {"order": order, "state": tag, "region": region})
            if tag != "paid":
                continue
            payments += 1
            card = "lost" if payments % LOST_CARD_EVERY == 0 else "valid"
            amount = source.randrange(5_00, 500_00) / 100
            payment = {"order": order, "card": card, "amount": amount, "at": now_ms()}
            yield shop_message(PAYMENTS, card, order, payment)


def shop_message(topic: str, tag: str, order: str, content: dict[str, object]) -> Message:
    return Message(topic, json.dumps(content).encode(), tags=tag, keys=(order,))


def book(body: bytes, now_ms: int) -> float:
    """Book a payment; raise LostCardError for a lost card."""
    payment = json.loads(body)
    if payment["card"] == "lost" and now_ms < payment["at"] + LOST_FOR_MS:
        raise LostCardError(f"{payment['order']}: the card was reported lost")
    return float(payment["amount"])
