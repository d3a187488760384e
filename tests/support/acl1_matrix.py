"""A matrix of requests for ACL 1.0: accounts, request codes, topics and groups.

`recorded` reads the decisions of a Java broker with the same file, from
tests/unit/auth/acl1-4.9.7.txt; `python -m tests.compat.record_acl1` renews the recording.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from core_broker.auth.signature import SigningKey, signed_fields
from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
    encode_body,
)
from core_broker.remoting.codes import RequestCode as Code

RECORDED = Path(__file__).parents[1] / "unit" / "auth" / "acl1-4.9.7.txt"

FILE = """\
globalWhiteRemoteAddresses:
- 127.0.0.9
accounts:
- accessKey: nothing
  secretKey: secret-of-nothing
  whiteRemoteAddress: 127.0.0.8
- accessKey: defaults
  secretKey: secret-of-defaults
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: SUB
  topicPerms:
  - D=DENY
- accessKey: listed-1
  secretKey: secret-of-listed-1
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms:
  - P=PUB
  - S=SUB
  - PS=PUB|SUB
  - D=DENY
  groupPerms:
  - G=SUB
  - GP=PUB
  - GD=DENY
- accessKey: admin-1
  secretKey: secret-of-admin-1
  admin: true
- accessKey: admin-2
  secretKey: secret-of-admin-2
  admin: true
  topicPerms:
  - P=PUB
"""
_EXCEPTION = "org.apache.rocketmq.acl.common.AclException: "
ALLOWED = "allowed"


class Sender(NamedTuple):
    """An account, its secret key (empty: unsigned), and the address of the client."""

    access_key: str
    secret_key: str
    address: str = "127.0.0.1"


SENDERS = {
    "no account": Sender("", ""),
    "unknown": Sender("unknown-1", "secret-of-unknown"),
    "wrong secret": Sender("listed-1", "another-secret"),
    "unsigned": Sender("listed-1", ""),
    "nothing": Sender("nothing", "secret-of-nothing"),
    "defaults": Sender("defaults", "secret-of-defaults"),
    "listed": Sender("listed-1", "secret-of-listed-1"),
    "admin": Sender("admin-1", "secret-of-admin-1"),
    "listed admin": Sender("admin-2", "secret-of-admin-2"),
    "white account": Sender("nothing", "", "127.0.0.8"),
    "other white account": Sender("listed-1", "", "127.0.0.8"),
    "white address": Sender("", "", "127.0.0.9"),
}


class Asked(NamedTuple):
    """A request without keys; `names` are the topics and groups that decide."""

    code: Code
    names: tuple[str, ...]
    fields: dict[str, str]
    body: bytes = b""

    @property
    def title(self) -> str:
        return " ".join((f"{self.code:d}", *self.names))

    def signed_by(self, sender: Sender) -> dict[str, str]:
        """The ext fields with the account and its signature."""
        fields = dict(self.fields)
        if sender.access_key:
            fields["AccessKey"] = sender.access_key
        if sender.secret_key:
            key = SigningKey(sender.secret_key)
            fields["Signature"] = key.sign(signed_fields(fields), self.body)
        return fields

    def outcome(self, remark: str | None) -> str:
        """The decision in a remark. Java checks several resources in the order of their hashes."""
        if not (remark or "").startswith(_EXCEPTION):
            return ALLOWED
        text = (remark or "").removeprefix(_EXCEPTION).partition(", org.apache")[0]
        if len(self.names) > 1 and text.startswith("No default permission"):
            return "No default permission"
        return text


def requests() -> Iterator[Asked]:
    """All requests of the matrix. Every request misses fields that a handler needs."""
    topics = ("P", "S", "PS", "D", "other", "RMQ_SYS_TRACE_TOPIC", "%DLQ%G")
    groups = ("G", "GP", "GD", "other")
    for topic in topics:
        yield Asked(Code.SEND_MESSAGE, (topic,), {"topic": topic})
        yield Asked(Code.SEND_MESSAGE_V2, (topic,), {"a": "PG", "b": topic})
        yield Asked(Code.SEND_BATCH_MESSAGE, (topic,), {"a": "PG", "b": topic})
        yield Asked(Code.QUERY_MESSAGE, (topic,), {"topic": topic})
    for group in groups:
        retry = f"%RETRY%{group}"
        yield Asked(Code.SEND_MESSAGE, (retry,), {"topic": retry})
        yield Asked(Code.SEND_MESSAGE_V2, (retry, group), {"a": group, "b": retry})
        yield Asked(Code.CONSUMER_SEND_MSG_BACK, (group,), {"group": group})
        yield Asked(Code.GET_CONSUMER_LIST_BY_GROUP, (group,), {"consumerGroup": group})
        yield Asked(Code.UNREGISTER_CLIENT, (group,), {"clientID": "c", "consumerGroup": group})
        for topic in ("S", "P", "other"):
            both = {"topic": topic, "consumerGroup": group}
            yield Asked(Code.PULL_MESSAGE, (topic, group), both)
            yield Asked(Code.UPDATE_CONSUMER_OFFSET, (topic, group), both)
            yield Asked(Code.HEART_BEAT, (topic, group), {}, _heartbeat(group, topic))
    yield Asked(Code.UNREGISTER_CLIENT, (), {"clientID": "c", "producerGroup": "PG"})
    for code in (
        *(Code.UPDATE_AND_CREATE_TOPIC, Code.DELETE_TOPIC_IN_BROKER),
        *(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, Code.DELETE_SUBSCRIPTIONGROUP),
        *(Code.QUERY_CONSUMER_OFFSET, Code.GET_MAX_OFFSET, Code.GET_ALL_TOPIC_CONFIG),
        *(Code.VIEW_MESSAGE_BY_ID, Code.LOCK_BATCH_MQ, Code.GET_BROKER_RUNTIME_INFO),
        *(Code.GET_CONSUME_STATS, Code.INVOKE_BROKER_TO_RESET_OFFSET),
    ):
        yield Asked(code, (), {})


def _heartbeat(group: str, topic: str) -> bytes:
    consumer = ConsumerData(group_name=group, subscription_data_set=[SubscriptionData(topic=topic)])
    return encode_body(HeartbeatData(client_id="c", consumer_data_set=[consumer]))


def recorded() -> dict[tuple[str, str], str]:
    """The decisions of the Java broker, by title of the request and sender."""
    lines = map(partial(str.split, sep="\t"), RECORDED.read_text().splitlines())
    return {(title, sender): outcome for title, sender, outcome in lines}
