"""Foreign clients whose requests a broker refuses: the code and the remark of RocketMQ, no message.

The clients reach an open name server, so that the broker refuses. `ACCESS_CHECKS=all` runs each
client in both generations, otherwise only the newest Java client does.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Callable

import pytest

from core_broker.auth.refusals import LOGGED_EVERY_S
from core_broker.client import AdminClient
from core_broker.client.admin import AccessAccount
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from tests.compat import installing
from tests.compat.broker_state import ask, create_topic, eventually, stored_count
from tests.compat.conftest import Maker, SecuredClusters
from tests.compat.foreign import ForeignClient
from tests.compat.secured import (
    APPLICATION,
    DENIED_GROUP,
    DENIED_TOPIC,
    GENERATIONS,
    SecuredCluster,
    secret_of,
    signing,
)
from tests.compat.test_traces import messages_of

StartClients = Callable[[str, str], Maker]
#: Account and secret of the requests; topic; code and remark in both generations.
Row = tuple[dict[str, str], str, dict[str, tuple[int, str]]]

OPEN = "Open"
UNSIGNED: Row = (
    {},
    OPEN,
    {"acl1": (1, "No accessKey is configured"), "acl2": (16, "username cannot be null")},
)
ROWS: dict[str, Row] = {
    "unknown account": (
        {"account": "nobody-here", "secret": "secret-of-nobody"},
        OPEN,
        {
            "acl1": (1, "No acl config for nobody-here"),
            "acl2": (16, "User:nobody-here is not found"),
        },
    ),
    "wrong secret": (
        {"account": APPLICATION, "secret": "guessed-secret"},
        OPEN,
        {
            "acl1": (1, f"Check signature failed for accessKey={APPLICATION}"),
            "acl2": (16, "check signature failed"),
        },
    ),
    "denied topic": (
        signing(APPLICATION),
        DENIED_TOPIC,
        {
            "acl1": (1, f"No default permission for topic:{DENIED_TOPIC}"),
            "acl2": (16, f"User:{APPLICATION} has no permission to access Topic:{DENIED_TOPIC}"),
        },
    ),
}
#: Clients whose errors name neither code nor remark. Node's signs always, and does not close then.
SILENT = ("node", "cpp")
KINDS = ("java", "java5", "go", *SILENT)
CHANGING = "changing"
EVERY = os.environ.get("ACCESS_CHECKS") == "all"

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)


def in_turn(*kinds: str) -> pytest.MarkDecorator:
    """Clients with a generation each, in turn; java5 with both."""
    pairs = [
        (kind, generation)
        for number, kind in enumerate(kinds)
        for turn, generation in enumerate(GENERATIONS)
        if EVERY or kind == "java5" or number % len(GENERATIONS) == turn
    ]
    return pytest.mark.parametrize(("kind", "cluster"), pairs, indirect=["cluster"])


@pytest.fixture
def cluster(request: pytest.FixtureRequest, secured_clusters: SecuredClusters) -> SecuredCluster:
    cluster = secured_clusters.get(request.param, is_namesrv_open=True)
    for topic in (OPEN, DENIED_TOPIC):
        create_topic(cluster, topic, queues=1)
    return cluster


@in_turn(*KINDS)
def test_a_refused_sender_gets_code_and_remark(
    kind: str, cluster: SecuredCluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, cluster.namesrv_addr)
    before = stored_count(cluster, OPEN)
    rows = ROWS if kind == "node" else ROWS | {"unsigned": UNSIGNED}
    for name, (account, topic, answers) in rows.items():
        client = clients.start()
        client.command("produce", namesrv=cluster.namesrv_addr, group=f"PG-{kind}", **account)
        client.wait_for("ready")
        text = client.refusal("send", topic=topic, messages=[{"body": name}])
        if kind in SILENT:
            client.kill()
        else:
            check_refusal(text, answers[cluster.generation])
        clients.stop_all()
    assert stored_count(cluster, OPEN) == before
    assert stored_count(cluster, DENIED_TOPIC) == 0


def check_refusal(text: str, expected: tuple[int, str]) -> None:
    """The text of a client has the broker's code and remark."""
    code, remark = expected
    assert re.search(rf"CODE: {code}\b", text), text
    assert remark in text


@in_turn("java", "java5")
def test_a_refused_consumer_gets_no_message(
    kind: str, cluster: SecuredCluster, start_clients: StartClients
) -> None:
    """A pull consumer gets code and remark. A push consumer hides them; the broker counts them."""
    clients = start_clients(kind, cluster.namesrv_addr)
    producer = clients.start()
    common = {"namesrv": cluster.namesrv_addr, **signing(APPLICATION)}
    producer.command("produce", group=f"PG-{kind}", **common)
    producer.wait_for("ready")
    producer.send(OPEN, [{"body": "not for the denied group"}])
    before = refused(cluster, "no-permission")
    pushing = clients.start()
    pushing.command("consume", group=DENIED_GROUP, topic=OPEN, expression="*", **common)
    pushing.wait_for("ready")
    eventually(lambda: refused(cluster, "no-permission") > before, "a refused request", 60)
    assert not pushing.messages
    pulling = clients.start()
    text = pulling.refusal("pull", group=DENIED_GROUP, topic=OPEN, **common)
    remark = {
        "acl1": (1, f"No default permission for group:{DENIED_GROUP}"),
        "acl2": (16, f"User:{APPLICATION} has no permission to access Group:{DENIED_GROUP}"),
    }
    check_refusal(text, remark[cluster.generation])


def refused(cluster: SecuredCluster, reason: str) -> int:
    return cluster.refusals().get(reason, 0)


@in_turn("java", "java5", "go")
def test_a_changed_account_is_refused_on_its_open_connection(
    kind: str, cluster: SecuredCluster, start_clients: StartClients
) -> None:
    """Another secret, the old one again, no account: a neighbour sends all the time."""
    clients = start_clients(kind, cluster.namesrv_addr)
    change(cluster, secret_of(CHANGING))
    topic = create_topic(cluster, f"Changed-{kind}", queues=1)
    changing, neighbour = clients.start(), clients.start()
    for client, account in ((changing, CHANGING), (neighbour, APPLICATION)):
        client.command(
            "produce", namesrv=cluster.namesrv_addr, group=f"PG-{account}", **signing(account)
        )
        client.wait_for("ready")

    def send(client: ForeignClient) -> None:
        client.send(topic, [{"body": "served"}])

    def refuse(expected: tuple[int, str]) -> None:
        send(neighbour)
        text = changing.refusal("send", topic=topic, messages=[{"body": "refused"}])
        check_refusal(text, expected)
        send(neighbour)

    answers = CHANGES[cluster.generation]
    send(changing)
    change(cluster, "another-secret")
    refuse(answers["secret"])
    change(cluster, secret_of(CHANGING))
    send(changing)
    take_away(cluster)
    refuse(answers["account"])
    change(cluster, secret_of(CHANGING))
    send(changing)
    assert {message.body for message in messages_of(cluster, topic)} == {b"served"}
    check_log(cluster)


def check_log(cluster: SecuredCluster) -> None:
    """Each reason is in the log, once in an interval: all clients have one address."""
    reasons = cluster.refusals().keys()
    logged = Counter(
        re.findall(r"refused request .* account \S+: ([\w-]+)", cluster.broker.printed)
    )
    intervals = 1 + (time.monotonic() - cluster.begun_s) // LOGGED_EVERY_S
    assert reasons
    assert reasons <= logged.keys()
    assert max(logged.values()) <= intervals


#: Generation → change of the account → code and remark.
CHANGES = {
    "acl1": {
        "secret": (1, f"Check signature failed for accessKey={CHANGING}"),
        "account": (1, f"No acl config for {CHANGING}"),
    },
    "acl2": {
        "secret": (16, "check signature failed"),
        "account": (16, f"User:{CHANGING} is disabled"),
    },
}


def change(cluster: SecuredCluster, secret: str) -> None:
    """Give the account a secret; create or enable the account."""
    addr = cluster.broker_addr

    async def write(admin: AdminClient) -> None:
        if cluster.generation == "acl1":
            account = AccessAccount(CHANGING, secret, default_topic_perm="PUB|SUB")
            await admin.update_access_account(addr, account)
            return
        user = UserInfo(username=CHANGING, password=secret, user_status="enable")
        if await admin.user(addr, CHANGING) is not None:
            await admin.update_user(addr, user)
            return
        await admin.create_user(addr, user)
        entry = PolicyEntryInfo(resource="Topic:*", actions=["Pub"], decision="Allow")
        policies = [PolicyInfo(entries=[entry])]
        await admin.create_acl(addr, AclInfo(subject=f"User:{CHANGING}", policies=policies))

    ask(cluster, write)


def take_away(cluster: SecuredCluster) -> None:
    """Delete the account of ACL 1.0; disable the user of ACL 2.0."""
    addr = cluster.broker_addr
    if cluster.generation == "acl1":
        ask(cluster, lambda admin: admin.delete_access_account(addr, CHANGING))
    else:
        user = UserInfo(username=CHANGING, user_status="disable")
        ask(cluster, lambda admin: admin.update_user(addr, user))
