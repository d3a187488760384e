"""Foreign clients do with access control what they do without: the acceptance tests, signed.

The Java clients use TLS, and the servers refuse connections without TLS. The other clients have no
TLS, and use servers that accept connections without. `ACCESS_CHECKS=all` runs each test with each
client in both generations. Otherwise tests with similar requests do not run, and each client runs
a test in one generation, in turn.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.compat import (
    installing,
    test_acceptance,
    test_consuming,
    test_traces,
    test_transactions,
)
from tests.compat.broker_state import create_topic, eventually, lag, stored_count
from tests.compat.conftest import Maker, Pool, SecuredClusters, client_makers
from tests.compat.kinds import KINDS
from tests.compat.secured import (
    APPLICATION,
    GENERATIONS,
    SecuredCluster,
    signing,
)
from tests.compat.test_retries import check_sixteen_retries

StartClients = Callable[[str, str], Maker]
Check = Callable[[str, SecuredCluster, StartClients], None]

JAVA_KINDS = ("java", "java5")
#: The clients without TLS that sign; the Rust driver does not sign.
OTHER_KINDS = ("cpp", "node", "go")
SIGNING_KINDS = (*JAVA_KINDS, *OTHER_KINDS)
EVERY = os.environ.get("ACCESS_CHECKS") == "all"

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)


@pytest.fixture
def start_clients(
    pool: Pool, encrypting_pool: Pool, record_property: Callable[[str, object], None]
) -> Iterator[StartClients]:
    """As the fixture of the folder; clients sign as the application, Java's with TLS."""
    with (
        client_makers(pool, record_property, signing(APPLICATION)) as others,
        client_makers(encrypting_pool, record_property, signing(APPLICATION)) as java,
    ):
        yield lambda kind, namesrv: (java if kind in JAVA_KINDS else others)(kind, namesrv)


def pull_consumers(kind: str, cluster: SecuredCluster, start_clients: StartClients) -> None:
    """Java's pull consumer and lite pull consumer read all messages and commit offsets."""
    clients = start_clients(kind, cluster.namesrv_addr)
    topic = create_topic(cluster, f"Pulled-{kind}", queues=2)
    bodies = {f"{number}" for number in range(20)}
    clients.producer(f"PG-pulled-{kind}").send(topic, [{"body": body} for body in bodies])
    for do, event in (("pull", "pulled"), ("poll", "polled")):
        group = f"CG-{event}-{kind}"
        reader = clients.start()
        common = {"namesrv": cluster.namesrv_addr, "group": group, **signing(APPLICATION)}
        reader.command(do, topic=topic, count=len(bodies), **common)
        reader.wait_for(event, seconds=90)
        assert {each["body"] for each in reader.messages} == bodies
        eventually(partial(is_consumed, cluster, group, topic), f"offsets of {group}", 60)


def compiled_path(kind: str, cluster: SecuredCluster, start_clients: StartClients) -> None:
    """The compiled path takes signed sends through TLS."""
    clients = start_clients(kind, cluster.namesrv_addr)
    topic = create_topic(cluster, f"Compiled-{kind}", queues=1)
    before = cluster.varz()["kernel"]
    clients.producer(f"PG-compiled-{kind}").send(topic, [{"body": f"{n}"} for n in range(30)])
    after = cluster.varz()["kernel"]
    assert not after["is_compiled"] or after["messages_sent"] > before["messages_sent"]


def is_consumed(cluster: SecuredCluster, group: str, topic: str) -> bool:
    return lag(cluster, group, topic) == 0


def queries(kind: str, cluster: SecuredCluster, start_clients: StartClients) -> None:
    """Queries by key and by unique id, whose field _UNIQUE_KEY_QUERY clients sign or not."""
    clients = start_clients(kind, cluster.namesrv_addr)
    topic = create_topic(cluster, f"Queried-{kind}", queues=1)
    producer = clients.producer(f"PG-queried-{kind}")
    sent = producer.send(topic, [{"body": f"{n}", "keys": f"query-{n}"} for n in range(3)])
    eventually(lambda: stored_count(cluster, topic) == len(sent), "the messages", 60)
    producer.command("query", topic=topic, key="query-1")
    producer.wait_for("queried")
    assert [each["body"] for each in producer.messages] == ["1"]
    producer.command("view", topic=topic, id=sent[2]["id"])
    assert producer.wait_for("message", 2)[1]["body"] == "2"


#: Requests of their own kind each: these run always.
OF_ALL: tuple[Check, ...] = (
    test_acceptance.test_async,
    test_acceptance.test_a_batch,
    test_consuming.test_orderly_consuming_keeps_the_order_of_each_queue,
    test_transactions.test_transactions_with_check_back,
    test_transactions.test_a_request_gets_its_reply,
    check_sixteen_retries,
)
OF_JAVA: tuple[Check, ...] = (
    compiled_path,
    pull_consumers,
    queries,
    test_traces.test_a_timeline_traced_by_java,
    test_traces.test_the_end_of_a_transaction_traced_by_java,
)
#: Requests as in the tests above.
FURTHER: tuple[Check, ...] = (
    test_acceptance.test_a_thousand_messages,
    test_acceptance.test_a_topic_is_created_by_the_first_message,
    test_acceptance.test_the_tag_filter,
    test_acceptance.test_a_compressed_body,
    test_acceptance.test_oneway,
    test_acceptance.test_messages_of_one_shard_stay_in_order,
    test_acceptance.test_two_members_share_the_queues_and_the_survivor_takes_all,
    test_consuming.test_an_orderly_failure_holds_back_its_queue,
    test_consuming.test_broadcasting_delivers_all_messages_to_all_members,
    test_consuming.test_the_sql92_filter,
)


def kinds_of(check: Check) -> list[str]:
    """The kinds of the marks of a test, without kinds that do not sign."""
    if check in OF_JAVA:
        return [*JAVA_KINDS]
    if check is check_sixteen_retries:
        return [kind for kind, each in KINDS.items() if "retries" not in each.lacks]
    (mark,) = (mark for mark in getattr(check, "pytestmark", ()) if mark.name == "parametrize")
    return [str(kind) for kind in mark.args[1]]


def cases() -> Iterator[tuple[str, str, Check]]:
    for row, check in enumerate((*OF_ALL, *OF_JAVA, *(FURTHER if EVERY else ()))):
        for kind in kinds_of(check):
            if kind in SIGNING_KINDS:
                turn = (row + SIGNING_KINDS.index(kind)) % len(GENERATIONS)
                generations = GENERATIONS if EVERY else (GENERATIONS[turn],)
                yield from ((generation, kind, check) for generation in generations)


def title(value: object) -> str:
    return value if isinstance(value, str) else getattr(value, "__name__", "")


@pytest.mark.parametrize(("generation", "kind", "check"), [*cases()], ids=title)
def test_acceptance_with_access_control(
    generation: str,
    kind: str,
    check: Check,
    secured_clusters: SecuredClusters,
    start_clients: StartClients,
) -> None:
    cluster = secured_clusters.get(generation, has_tls=kind in JAVA_KINDS)
    before = cluster.refusals()
    check(kind, cluster, start_clients)
    assert cluster.refusals() == before, cluster.broker.printed
    assert "refused request code" not in cluster.namesrv.printed
