import logging
import random
from itertools import islice

import pytest

from console.demo import shop
from console.demo.__main__ import mark_intended

NOW_MS = 1_700_000_000_000


def test_the_same_seed_makes_the_same_day() -> None:
    def day() -> list[tuple[str, bytes]]:
        return [
            (each.topic, each.body)
            for each in islice(shop.messages(random.Random(1), lambda: NOW_MS), 50)
        ]

    assert day() == day()


def test_accounting_refuses_some_payments_and_books_the_rest() -> None:
    payments = [
        each
        for each in islice(
            shop.messages(random.Random(1), lambda: NOW_MS), 4 * 2 * shop.LOST_CARD_EVERY
        )
        if each.topic == shop.PAYMENTS
    ]
    refused = [each for each in payments if each.tags == "lost"]
    assert len(refused) == 2
    for payment in payments:
        if payment in refused:
            with pytest.raises(shop.LostCardError, match=payment.keys[0]):
                shop.book(payment.body, NOW_MS)
            assert shop.book(payment.body, NOW_MS + shop.LOST_FOR_MS) > 0
        else:
            assert shop.book(payment.body, NOW_MS) > 0


def test_a_refused_payment_is_a_dead_letter_within_a_minute_before_its_card_is_found() -> None:
    delays_s = [1, 5, 10, 30, 60]  # levels 1 to 5; the first retry waits level 3
    died_s = sum(delays_s[2 : 2 + shop.ACCOUNTING.retries_max])
    assert died_s < 60 < shop.LOST_FOR_MS / 1000


def test_the_log_says_that_a_rejected_payment_is_intended(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("core_broker.client.consumer.listening")
    caplog.handler.addFilter(mark_intended)
    try:
        for error in (shop.LostCardError("ORDER-1: the card was reported lost"), ValueError("x")):
            log.warning("The listener of %s failed for %s", "accounting", "ID", exc_info=error)
    finally:
        caplog.handler.removeFilter(mark_intended)
    intended, other = caplog.records
    assert intended.levelname == "INFO"
    assert intended.getMessage().startswith("Intended failure of the demo")
    assert "ORDER-1" in intended.getMessage()
    assert "Traceback" not in caplog.handler.format(intended)
    assert (other.levelname, other.getMessage()) == (
        "WARNING",
        "The listener of accounting failed for ID",
    )
