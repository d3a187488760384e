"""A broker with the accounts of plain_acl.yml (ACL 1.0), driven by clients and mqadmin."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from core_broker.client import (
    AclRpcHook,
    AdminClient,
    ConsumerSettings,
    ConsumeStatus,
    Message,
    MessageExt,
    Producer,
    PullConsumer,
    PushConsumer,
    TopicConfig,
)
from core_broker.errors import GantryError, RequestRefused
from tests.client.mqadmin_runs import Mqadmin
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

#: Generous: reloads and rebalances of a busy machine.
TIMEOUT_S = 60.0
KEYS = {
    "administrator": "secret-of-administrator",
    "publisher": "secret-of-publisher",
    "subscriber": "secret-of-subscriber",
}
RULES = """\
# The accounts of the tests.
globalWhiteRemoteAddresses: [10.99.99.99]
accounts:
- accessKey: administrator
  secretKey: secret-of-administrator
  admin: true
# Publishes to one topic.
- accessKey: publisher
  secretKey: secret-of-publisher
  topicPerms: [{topics}]
- accessKey: subscriber
  secretKey: secret-of-subscriber
  topicPerms: [Mine=SUB]
  groupPerms: [CG-mine=SUB]
"""


class Secured:
    """A cluster with access control; the tests change the rules' file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "home/conf/plain_acl.yml"
        self.file.parent.mkdir(parents=True)
        self.write(RULES.format(topics="Mine=PUB"))
        self.cluster = Cluster(folder, acl_enable=True, rocketmq_home=folder / "home")
        self.namesrv_addr = self.cluster.namesrv_addr
        self.addr = self.cluster.broker_addr

    def write(self, text: str) -> None:
        """Replace the file as an editor does."""
        fresh = self.file.with_suffix(".fresh")
        fresh.write_text(text)
        fresh.replace(self.file)

    def admin(self, account: str = "administrator") -> AdminClient:
        return AdminClient(self.namesrv_addr, rpc_hooks=[hook(account)])

    def mqadmin(self, account: str) -> Mqadmin:
        return Mqadmin(self.namesrv_addr, (account, KEYS[account]))

    async def stored(self, topic: str) -> int:
        """Number of stored messages of a topic."""
        async with self.admin() as admin:
            stats = await admin.topic_stats(self.addr, topic)
        return sum(offsets.max_offset for offsets in stats.values())

    async def create_topics(self) -> None:
        async with self.admin() as admin:
            for topic in ("Mine", "Theirs"):
                config = TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1)
                await admin.create_topic(self.addr, config)

    def is_ready(self) -> bool:
        """Whether /readyz is green."""
        url = f"http://127.0.0.1:{self.cluster.http_ports['broker']}/readyz"
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            return False


def hook(account: str) -> AclRpcHook:
    return AclRpcHook(account, KEYS[account])


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Shared by the tests: each leaves the rules as they were, and counts its own messages."""
    secured = Secured(tmp_path_factory.mktemp("accounts"))
    try:
        asyncio.run(secured.create_topics())
        yield secured
    finally:
        secured.cluster.stop()


async def test_clients_reach_the_topics_of_their_accounts_only(secured: Secured) -> None:
    mine, theirs = await secured.stored("Mine"), await secured.stored("Theirs")
    async with Producer("PG", secured.namesrv_addr, rpc_hooks=[hook("publisher")]) as producer:
        sent = await producer.send(Message("Mine", b"one"))
        await producer.send_batch([Message("Mine", b"two"), Message("Mine", b"three")])
        with pytest.raises(GantryError, match="No default permission for topic:Theirs"):
            await producer.send(Message("Theirs", b"x"))
        with pytest.raises(GantryError, match="No default permission for topic:Theirs"):
            await producer.send_batch([Message("Theirs", b"x"), Message("Theirs", b"y")])
        await producer.send_oneway(Message("Theirs", b"x"))
        # The one-way send is before this send on the same connection.
        await producer.send(Message("Mine", b"four"))
    async with Producer("PG", secured.namesrv_addr) as unsigned:
        with pytest.raises(GantryError, match="No accessKey is configured"):
            await unsigned.send(Message("Mine", b"x"))
    wrong = AclRpcHook("publisher", "another-secret")
    async with Producer("PG", secured.namesrv_addr, rpc_hooks=[wrong]) as forged:
        with pytest.raises(GantryError, match="Check signature failed for accessKey=publisher"):
            await forged.send(Message("Mine", b"x"))
    assert await secured.stored("Theirs") == theirs
    assert await secured.stored("Mine") == mine + 4

    bodies: list[bytes] = []
    settings = ConsumerSettings(commit_interval_s=0.1)
    hooks = [hook("subscriber")]
    consumer = PushConsumer("CG-mine", secured.namesrv_addr, settings=settings, rpc_hooks=hooks)
    consumer.subscribe("Mine")

    @consumer.listener
    async def take(messages: list[MessageExt]) -> ConsumeStatus:
        bodies.extend(message.body for message in messages)
        return ConsumeStatus.CONSUME_SUCCESS

    async with consumer:
        await eventually(lambda: {b"one", b"two", b"three", b"four"} <= {*bodies}, TIMEOUT_S)
    async with PullConsumer("CG-theirs", secured.namesrv_addr, rpc_hooks=hooks) as other:
        with pytest.raises(GantryError, match="No default permission for group:CG-theirs"):
            await other.pull(sent.queue, 0)


async def test_mqadmin_changes_accounts_and_keeps_comments(secured: Secured) -> None:
    target = ("-b", secured.addr)
    new = ("updateAclConfig", *target, "-a", "newcomer", "-s", "secret-of-newcomer")
    administrator, publisher = secured.mqadmin("administrator"), secured.mqadmin("publisher")
    # RocketMQ 4.9.8 lets every account create administrators.
    refused = await asyncio.to_thread(publisher, *new, "-m", "true", code=1)
    assert "Need admin permission for request code=50" in refused.stderr
    assert "newcomer" not in secured.file.read_text()
    theirs = await secured.stored("Theirs")

    await asyncio.to_thread(administrator, *new, "-t", "Theirs=PUB")
    text = secured.file.read_text()
    assert "# The accounts of the tests." in text
    assert "# Publishes to one topic." in text
    newcomer = AclRpcHook("newcomer", "secret-of-newcomer")
    async with Producer("PG", secured.namesrv_addr, rpc_hooks=[newcomer]) as producer:
        await producer.send(Message("Theirs", b"one"))
        await asyncio.to_thread(administrator, *new, "-t", "Theirs=DENY")
        with pytest.raises(GantryError, match="No default permission for topic:Theirs"):
            await producer.send(Message("Theirs", b"x"))
        await asyncio.to_thread(administrator, "deleteAclConfig", *target, "-a", "newcomer")
        with pytest.raises(GantryError, match="No acl config for newcomer"):
            await producer.send(Message("Theirs", b"x"))
    assert await secured.stored("Theirs") == theirs + 1

    document = await asyncio.to_thread(administrator.document, "clusterAclConfigVersion", *target)
    (version,) = document["aclFiles"]
    assert version["aclFile"] == str(secured.file)
    assert version["counter"] >= 3
    async with AdminClient(secured.namesrv_addr) as unsigned:
        with pytest.raises(RequestRefused, match="No accessKey is configured"):
            await unsigned.runtime_info(secured.addr)
        white = ("updateGlobalWhiteAddr", *target, "-g")
        await asyncio.to_thread(administrator, *white, "10.99.99.99,127.0.0.1")
        assert await unsigned.runtime_info(secured.addr)
        await asyncio.to_thread(administrator, *white, "10.99.99.99")
        with pytest.raises(RequestRefused, match="No accessKey is configured"):
            await unsigned.runtime_info(secured.addr)


async def test_rules_change_while_clients_send_and_never_mix(secured: Secured) -> None:
    expected = {topic: await secured.stored(topic) for topic in ("Mine", "Theirs")}
    async with Producer("PG", secured.namesrv_addr, rpc_hooks=[hook("publisher")]) as producer:

        async def allowed() -> str:
            """Which topics the publisher reaches, in the order Mine, Theirs, Mine."""
            results = ""
            for topic in ("Mine", "Theirs", "Mine"):
                try:
                    await producer.send(Message(topic, b"x"))
                    expected[topic] += 1
                    results += "1"
                except GantryError as error:
                    refused = f"No default permission for topic:{topic}" in str(error)
                    results += "0" if refused else str(error)
            return results

        assert await allowed() == "101"
        secured.write(RULES.format(topics="Theirs=PUB"))
        seen = []

        async def become(result: str) -> bool:
            seen.append(await allowed())
            return seen[-1] == result

        await eventually(lambda: become("010"), TIMEOUT_S)
        # The swap may be between two of the three sends.
        order = ["101", "100", "110", "010"]
        assert {*seen} <= {*order}
        assert seen == sorted(seen, key=order.index)

        secured.write(RULES.format(topics="Mine=PUB") + "- accessKey: short\n")
        await eventually(
            lambda: "the rules in force stay" in secured.cluster.broker.printed, TIMEOUT_S
        )
        assert not secured.is_ready()
        assert await allowed() == "010"
        secured.write(RULES.format(topics="Mine=PUB"))
        await eventually(lambda: become("101"), TIMEOUT_S)
        assert secured.is_ready()
    for topic, number in expected.items():
        assert await secured.stored(topic) == number


async def test_rules_and_accounts_survive_a_kill(secured: Secured) -> None:
    target = ("-b", secured.addr)
    new = ("updateAclConfig", *target, "-a", "durable", "-s", "secret-of-durable")
    await asyncio.to_thread(secured.mqadmin("administrator"), *new, "-t", "Mine=PUB")
    await asyncio.to_thread(secured.cluster.kill_broker)
    await asyncio.to_thread(secured.cluster.restart_broker)
    durable = AclRpcHook("durable", "secret-of-durable")
    async with Producer("PG", secured.namesrv_addr, rpc_hooks=[durable]) as producer:
        await producer.send(Message("Mine", b"x"))
        with pytest.raises(GantryError, match="No default permission for topic:Theirs"):
            await producer.send(Message("Theirs", b"x"))
