"""The compiled derivation of facts, against the same modules in plain Python."""

import random
import sys
from typing import Any

import pytest

from spark_jobs.tables.facts import by_message, facts_in
from tests.spark.test_facts import HOUR, SEED, START_MS, consumed, events_of, random_journeys, sent
from tests.support.plain_modules import plain_module
from trace import fact_columns
from trace.codec import EndTransaction, Recall


def test_compiled_and_plain_modules_derive_the_same_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    luck = random.Random(SEED)
    records = [record for own in random_journeys(luck, 300).values() for record in own]
    about = [record.msg_id for record in records]
    for msg_id in luck.sample(about, 40):
        at_ms = START_MS + luck.randrange(1_000_000)
        given: dict[str, Any] = {
            "timestamp_ms": at_ms,
            "group": "shop",
            "topic": "orders",
            "msg_id": msg_id,
        }
        state = luck.choice(("COMMIT_MESSAGE", "ROLLBACK_MESSAGE"))
        ending = EndTransaction(**given, transaction_state=state)
        records += luck.choice(
            (
                [ending],
                [Recall(**given)],
                [sent(at_ms - START_MS, f"{msg_id},M{at_ms}", msg_type=luck.choice((0, 1, 3)))],
                consumed(at_ms - START_MS, msg_id, "", group="", retry_times=16, success=False),
            )
        )
    events, limits = next(by_message(events_of(records), 1))[1], {"mail": 2, "stock": 1}
    installed = facts_in(events, range(HOUR, HOUR + 1), limits)
    monkeypatch.setitem(sys.modules, "trace.attempts", plain_module("trace.attempts"))
    plain = plain_module("trace.facts")
    assert plain.__file__ is not None
    assert plain.__file__.endswith(".py")
    for name in ("Events", "MessageFacts"):
        monkeypatch.setattr(fact_columns, name, getattr(plain, name))
    assert facts_in(events, range(HOUR, HOUR + 1), limits) == installed
    assert {*installed.column("fact").to_pylist()} == {"send", "attempt"}
