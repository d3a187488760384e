"""Samples: rates measured between two looks at a broker's counters."""

import json
from dataclasses import replace

import pytest

from console.gateway import Answer, BrokerFailure
from console.gateway.brokers.listing import BrokerRow, broker_row
from console.gateway.engine.session import BrokerRef
from console.web.live.sampler import rate_between, sample_of


def row(
    total: int | None, at_ms: int, *, rate: float | None = 9.0, broker_id: int = 0
) -> BrokerRow:
    ref = BrokerRef("a", broker_id, f"h:{broker_id}")
    return replace(
        broker_row(ref, "c", {}),
        in_total=total,
        out_total=total,
        in_rate=rate,
        out_rate=rate,
        counted_ms=at_ms,
    )


@pytest.mark.parametrize(
    ("before", "now", "rate"),
    [
        (None, row(100, 1000), 9.0),
        (row(100, 1000), row(150, 3000), 25.0),
        (row(100, 1000), row(100, 3000), 0.0),
        (row(100, 1000), row(40, 3000), 9.0),  # the broker restarted
        (row(100, 1000), row(120, 1000), 9.0),  # the same sample
        (row(None, 1000), row(150, 3000), 9.0),
        (row(100, 1000), row(None, 3000), 9.0),
        (None, row(None, 1000, rate=None), None),
    ],
)
def test_rates_between_two_samples(
    before: BrokerRow | None, now: BrokerRow, rate: float | None
) -> None:
    assert rate_between(before, now, "in") == rate
    assert rate_between(before, now, "out") == rate


def test_a_sample_adds_up_masters_and_can_be_sent() -> None:
    rows = (row(150, 3000), row(999, 3000, broker_id=1))
    sample = sample_of(Answer(rows, (), 3000), {"h:0": row(100, 1000)})
    assert sample["in_rate"] == 25.0
    assert [broker["master"] for broker in sample["brokers"]] == [True, False]
    assert json.loads(json.dumps(sample))["stored_bytes"] is None


def test_a_sample_without_brokers_knows_nothing() -> None:
    sample = sample_of(Answer((), (), 1), {})
    assert sample["in_rate"] is None
    assert sample["state"] == "stale"


def test_a_sample_is_fresh_only_when_every_broker_answers() -> None:
    up = row(150, 3000)
    down = replace(row(80, 1000, broker_id=2), state="down", contact_ms=1000)
    lost = BrokerFailure("a", "h:2", "gone", 1000)
    name_server = BrokerFailure("name server", "n:1", "gone")
    assert sample_of(Answer((up,), (), 3000), {})["state"] == "fresh"
    assert sample_of(Answer((up, down), (lost,), 3000), {})["state"] == "partly"
    assert sample_of(Answer((up,), (name_server,), 3000), {})["state"] == "partly"
    stale = sample_of(Answer((down,), (lost,), 3000), {})
    assert (stale["state"], stale["fresh_at_ms"], stale["in_rate"]) == ("stale", 1000, None)
