"""Counts of dead letters state when they were read: in the list, on the page, in the export."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from console.areas.deadletters.export import TABLE
from console.frame.formats import exact
from console.gateway import BrokerFailure, gateway
from console.gateway.dead_letters import summary
from console.gateway.dead_letters.summary import groups_with_dead_letters
from console.gateway.engine.answers import Answer, now_ms
from console.gateway.engine.session import ClusterSession
from console.gateway.inventory import topic_inventory
from console.services.exports.tables import Asked
from tests.api.conftest import Api
from tests.api.stored import Dead
from tests.api.test_pages import html
from tests.api.traffic import Traffic, poll


@pytest.fixture
def dead(api: Api, traffic: Traffic) -> Dead:
    found = Dead(traffic)
    poll(lambda: api.get(f"/dlq/{found.group}")["count"] == 3)
    return found


@pytest.fixture
def with_inventory(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer[Any]], None]:
    """Let the list of groups take its offsets from this answer, as from the cache of answers."""
    asked = ClusterSession.ask
    monkeypatch.setattr(summary, "TOPICS_ASKED_MAX", 0)

    def set_answer(inventory: Answer[Any]) -> None:
        async def ask(session: ClusterSession, question: Any, *rest: Any) -> Any:
            if question is topic_inventory:
                return inventory
            if question is groups_with_dead_letters:
                found = await question.run(session)
                return Answer(found.value, found.failures, now_ms())
            return await asked(session, question, *rest)

        monkeypatch.setattr(ClusterSession, "ask", ask)

    return set_answer


def in_list(api: Api, group: str) -> dict[str, Any]:
    [row] = [each for each in api.get("/dlq")["items"] if each["group"] == group]
    return dict(row)


def in_export(group: str) -> dict[str, Any]:
    rows = [
        row for part in TABLE.found(gateway.cluster("local"), Asked()).parts for row in part.rows
    ]
    [row] = [TABLE.row(each) for each in rows if each["group"] == group]
    return row


def test_counts_of_an_earlier_inventory_state_when_they_were_read(
    api: Api, page: Client, dead: Dead, with_inventory: Callable[[Answer[Any]], None]
) -> None:
    inventory = gateway.cluster("local").ask(topic_inventory)
    earlier = replace(inventory, asked_at_ms=inventory.asked_at_ms - 35_000)
    with_inventory(earlier)
    row = in_list(api, dead.group)
    assert (row["count"], row["read_ms"]) == (3, earlier.asked_at_ms)
    assert in_export(dead.group)["read_ms"] == earlier.asked_at_ms
    assert in_export(dead.group)["read"] == exact(earlier.asked_at_ms)
    shown = html(page, "/clusters/local/dlq/")
    assert "oldest values" in shown
    assert exact(earlier.asked_at_ms) in shown


def test_counts_of_a_broker_that_is_down_have_the_time_of_its_last_inventory(
    api: Api, dead: Dead, with_inventory: Callable[[Answer[Any]], None]
) -> None:
    inventory = gateway.cluster("local").ask(topic_inventory)
    down = [
        BrokerFailure(ref.name, ref.addr, "down", inventory.asked_at_ms - 90_000)
        for ref in inventory.value
    ]
    with_inventory(replace(inventory, failures=tuple(down)))
    assert in_list(api, dead.group)["read_ms"] == inventory.asked_at_ms - 90_000
    assert in_export(dead.group)["read_ms"] == inventory.asked_at_ms - 90_000


def test_counts_of_the_brokers_themselves_are_as_old_as_the_question(
    api: Api, page: Client, dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "TOPICS_ASKED_MAX", 100_000)
    one = api.get(f"/dlq/{dead.group}")
    assert one["asked_at_ms"] <= one["read_ms"] <= now_ms()
    assert "oldest values" not in html(page, "/clusters/local/dlq/")
