"""Objects that another tool creates: pages and REST resources find them at once, although the lists
of the cluster are cached.
"""

import pytest

from console.gateway import gateway
from console.gateway.engine import cache
from console.gateway.groups.listing import group_configs
from console.gateway.topics.listing import topic_configs
from tests.api.conftest import Api
from tests.api.traffic import Traffic


@pytest.fixture
def long_fresh(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists of a slow cluster: in the cache, and fresh for the time of the test."""
    monkeypatch.setattr(cache, "FRESH_PER_WORK", 1_000_000)
    monkeypatch.setattr(cache, "COSTLY_FRESH_MAX_MS", 600_000)
    for question in (topic_configs, group_configs):
        gateway.cluster("local").ask(question)


def test_a_new_topic_and_a_new_group_are_found(
    long_fresh: None, api: Api, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MISS_EVERY_MS", 0)
    monkeypatch.setattr(cache, "MISS_PER_WORK", 0)
    topic, group = traffic.topic(), traffic.group()
    assert api.get(f"/topics/{topic}")["name"] == topic
    assert api.get(f"/groups/{group}")["name"] == group


def test_invented_names_do_not_read_the_lists_again_and_again(
    long_fresh: None, api: Api, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MISS_EVERY_MS", 600_000)
    cluster = gateway.cluster("local")
    for number in range(3):
        api.get(f"/topics/invented-{number}", 404)
    asked_ms = cluster.ask(topic_configs).asked_at_ms
    for number in range(3, 9):
        api.get(f"/topics/invented-{number}", 404)
    assert cluster.ask(topic_configs).asked_at_ms == asked_ms
