"""Kinds of definitions that brokers refuse to show: named, left out, and never changed."""

import asyncio
from typing import Any

import pytest

from core_broker.definitions.cluster import Brokers, gather
from core_broker.definitions.comparing import Action, compare
from core_broker.definitions.model import EVERYWHERE, Document
from core_broker.definitions.reading import read
from core_broker.definitions.writing import to_yaml
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import TopicConfig
from core_broker.remoting.codes import ResponseCode

BROKERS = Brokers({"b": ["127.0.0.1:1"]}, frozenset())
DENIED = RequestRefused(ResponseCode.NO_PERMISSION, "alice may not\nread this")


class Admin:
    """Answers as a broker that denies `denied` with `refusal`."""

    def __init__(self, refusal: RequestRefused, *denied: str) -> None:
        self.refusal, self.denied = refusal, denied

    def __getattr__(self, name: str) -> Any:
        async def answer(_addr: str) -> Any:
            if name in self.denied:
                raise self.refusal
            config = TopicConfig(topic_name="orders", read_queue_nums=8, write_queue_nums=8)
            return {"topic_configs": {"orders": config}, "group_configs": {}}.get(name, [])

        return answer


def gathered(refusal: RequestRefused, *denied: str) -> Document:
    admin: Any = Admin(refusal, *denied)
    return asyncio.run(gather(admin, BROKERS))


def test_refused_kinds_are_named_in_the_document_with_the_reason() -> None:
    document = gathered(DENIED, "group_configs", "users", "acls")
    assert set(document.objects) == {"topics"}
    text = to_yaml(document, document.notes)
    assert "# groups, users, acls left out: alice may not read this\n" in text
    assert read(text).objects == document.objects, "comments change nothing"


def test_objects_of_a_refused_kind_cannot_be_applied() -> None:
    document = gathered(DENIED, "users")
    secret = {"password": "x", "userType": "Normal"}
    wanted = Document({"users": {"bob": {EVERYWHERE: secret}}, "topics": {}})
    items = {item.name: item for item in compare(wanted, document, ["b"])}
    assert items["bob"].action is Action.PROBLEM
    assert not items["bob"].changes
    assert "alice may not" in items["bob"].problem
    assert items["orders"].action is Action.EXTRA


def test_other_refusals_and_a_refusal_of_everything_are_errors() -> None:
    with pytest.raises(RequestRefused):
        gathered(RequestRefused(ResponseCode.SYSTEM_BUSY, "busy"), "topic_configs")
    with pytest.raises(RequestRefused):
        gathered(DENIED, "topic_configs", "group_configs", "users", "acls")
