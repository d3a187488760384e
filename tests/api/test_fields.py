"""`fields=` of lists: chosen members of items, unknown members, and lists without the parameter."""

import pytest
from rest_framework.exceptions import ValidationError

from console.api.fields import FIELDS_MAX, chosen_members
from tests.api.conftest import Api
from tests.api.traffic import Traffic, poll

pytestmark = pytest.mark.must_beat(28)
ITEMS = [
    {"name": "a", "lag": 1, "numbers": {"stored": 2, "groups": ["g"]}},
    {"name": "b", "lag": None, "numbers": None},
]


def test_items_have_the_chosen_members_and_a_dot_leads_into_an_object() -> None:
    assert chosen_members(ITEMS, "name, numbers.stored") == [
        {"name": "a", "numbers": {"stored": 2}},
        {"name": "b", "numbers": None},
    ]
    assert chosen_members(ITEMS, "numbers,numbers.stored")[0]["numbers"]["groups"] == ["g"]
    assert chosen_members([], "anything") == []


@pytest.mark.parametrize(
    "text", ["", ",", "nome", "numbers.nope", "name.x", "a," * FIELDS_MAX + "a"]
)
def test_unknown_missing_and_too_many_members_are_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        chosen_members(ITEMS, text)


def test_a_list_of_the_api_has_only_the_chosen_members(api: Api, traffic: Traffic) -> None:
    topic = traffic.topic("fields")
    path = f"/topics?q={topic}&fields=name,numbers.in_rate"
    poll(lambda: api.get(path)["items"])
    (item,) = api.get(path)["items"]
    assert item["name"] == topic
    assert set(item) == {"name", "numbers"}
    assert set(item["numbers"] or {"in_rate": 0}) == {"in_rate"}
    problem = api.get(f"/topics?q={topic}&fields=nome", 400)
    assert "numbers.in_rate" in problem["errors"]["fields"][0]
    assert "fields" in api.get(f"/topics/{topic}?fields=name", 400)["errors"]
