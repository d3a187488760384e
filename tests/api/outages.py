"""A cluster whose programs a test kills, seen through pages and REST API of the console."""

import re
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User

from tests.api.conftest import Api, browser
from tests.api.traffic import Traffic, poll

PAGES = ("", "brokers/", "topics/", "groups/", "clients/", "producers/", "dlq/")
#: Texts of empty lists, which an outage must never show.
NONE_YET = (
    "No topics yet",
    "No consumer groups yet",
    "No clients connected",
    "No producers connected",
    "No dead letters",
    "No group is behind",
    "all brokers up",
)


class Own:
    """A cluster that belongs to one test, configured as `local`, with a topic and a group."""

    def __init__(
        self, namesrv_addr: str, broker_addr: str, kill_broker: Callable[[], None], user: User
    ) -> None:
        self.broker_addr = broker_addr
        self.kill_broker = kill_broker
        self.api = Api(user)
        self.page = browser(user)
        self.traffic = Traffic(namesrv_addr, broker_addr)
        self.topic = self.traffic.topic("orders")
        self.group = self.traffic.group("accounting")
        self.traffic.send(self.topic, 3)

    def see_everything(self) -> None:
        """Open each page once: the console then knows the values before the outage."""
        for path in PAGES:
            assert self.get(path).status_code == 200, path
        poll(lambda: self.topic in self.text("topics/"))

    def get(self, path: str) -> Any:
        return self.page.get(f"/clusters/local/{path}")

    def text(self, path: str) -> str:
        answer = self.get(path)
        return str(answer.content.decode())

    def down(self) -> bool:
        """True when the console has noticed that the broker is down."""
        return bool(self.api.get("/brokers")["items"][0]["state"] == "down")

    def kill_and_notice(self) -> None:
        """Kill the broker and wait until the console shows the outage."""
        self.kill_broker()
        poll(self.down)


def check_red_with_last_values(own: Own) -> None:
    """Every page shows the outage, the last values and their time, and no empty list."""
    for path in PAGES:
        text = own.text(path)
        assert "alert-danger" in text, path
        assert path in ("", "dlq/") or "oldest values" in text, path
        for lie in NONE_YET:
            assert lie not in text, (path, lie)
    overview = own.text("")
    assert 'data-broker-state="down"' in overview
    assert "1 down" in overview
    for path, name in (("topics/", own.topic), ("groups/", own.group)):
        row = re.search(rf"<tr>(?:(?!</tr>).)*{name}.*?</tr>", own.text(path), re.DOTALL)
        assert row is not None, path
        assert "stale-mark" in row[0]
        assert "<time" in row[0]
    for path in (f"topics/{own.topic}/", f"groups/{own.group}/", "brokers/broker-a/"):
        answer = own.get(path)
        assert answer.status_code == 200, path
        assert "stale-mark" in answer.content.decode(), path


def check_failures_of_the_api(own: Own) -> None:
    """Every answer names the broker, and answers with last values have their time."""
    for path in ("", "/brokers", "/topics", "/groups", "/clients", "/dlq", "/load"):
        answer = own.api.get(path)
        # A question at the moment of the kill has another reason than later ones: two failures.
        assert {one["broker"] for one in answer["failures"]} == {"broker-a"}, (path, answer)
    topics = own.api.get("/topics")
    assert own.topic in [one["name"] for one in topics["items"]]
    assert topics["failures"][0]["as_of_ms"] > 0
    system = [one["name"] for one in own.api.get("/topics?type=system")["items"]]
    assert "broker-a" in system, "the topic of the broker keeps its type"
    assert own.api.get("/load")["state"] == "stale"
    (broker,) = own.api.get("/brokers")["items"]
    assert broker["contact_ms"] > 0
    assert broker["in_total"] >= 3, "the last values remain"
