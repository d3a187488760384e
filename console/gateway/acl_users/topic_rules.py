"""The question of the rules (ACL 2.0) that name one topic."""

from collections.abc import Iterator
from dataclasses import dataclass

from console.gateway.acl_users.listing import Tables, user_tables
from console.gateway.engine.answers import Partial
from console.gateway.engine.questions import question
from console.gateway.engine.session import ClusterSession
from console.gateway.processes import label

#: Maximum number of rules of an answer.
TOPIC_RULES_MAX = 500


@dataclass(frozen=True, slots=True)
class TopicRule:
    """A rule of a user on some resource that covers the topic, and the processes that have it."""

    username: str
    key: str
    rule: str
    brokers: tuple[str, ...]


@question(fresh_for_ms=2_000)
async def topic_rules(session: ClusterSession, topic: str) -> Partial[tuple[TopicRule, ...]]:
    """The rules that cover a topic, in order of user; at most TOPIC_RULES_MAX."""
    answer = await session.ask(user_tables)
    return Partial(tuple(rules_of(answer.value, topic))[:TOPIC_RULES_MAX], answer.failures)


def rules_of(tables: Tables, topic: str) -> Iterator[TopicRule]:
    brokers: dict[tuple[str, str, str], list[str]] = {}
    for ref, users in tables.items():
        for user in users.values():
            for entry in user.entries:
                if covers(entry.resource, topic):
                    found = brokers.setdefault((user.username, entry.key, entry.rule), [])
                    found.append(label(ref))
    for (username, key, rule), held in sorted(brokers.items()):
        yield TopicRule(username, key, rule, tuple(sorted(held)))


def covers(resource: str, topic: str) -> bool:
    """Return True for `*`, and for `Topic:` with the name, or with a prefix of the name and `*`."""
    kind, _colon, name = resource.partition(":")
    if resource == "*":
        return True
    if kind != "Topic":
        return False
    return topic.startswith(name.removesuffix("*")) if name.endswith("*") else topic == name
