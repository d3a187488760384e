"""`manage.py up --secure` as a new user runs it: keys, refusals, console, jobs, second start."""

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from core_broker.client import (
    AclRpcHook,
    AdminClient,
    ClientTls,
    Credentials,
    Message,
    Producer,
    PullStatus,
    SendStatus,
    TopicConfig,
)
from core_broker.errors import GantryError, RequestRefused
from core_broker.message.topics import TRACE_TOPIC
from tests.support.document_blocks import run_blocks, run_program
from tests.support.eventually import eventually
from tests.up.api import DEADLINE_S, Api, require_spark
from tests.up.gantry import ROOT, Gantry, clean_environment
from trace.hooks import TraceHook

TOPIC = "Secured"
SEND_MS_MAX = 30_000
SECRET_LINE = r"^  secret key +(\S+)"

pytestmark = pytest.mark.timeout(400)


class Secured:
    """A running Gantry with access control, with the addresses of its terminal output."""

    def __init__(self, gantry: Gantry, home: Path) -> None:
        self.gantry = gantry
        self.home = home
        self.url = gantry.until_ready()
        self.namesrv_addr = self.printed(r"^  name server +([^ ,]+:\d+)")
        self.broker_addr = self.printed(r"^  broker +([^ ,]+:\d+)")
        self.tls = ClientTls(trust_cert_path=self.printed(r"^  clients +trust ([^;]+);"))

    def printed(self, pattern: str) -> str:
        found = re.search(pattern, self.gantry.text, re.M)
        assert found, self.gantry.text
        return found[1]

    @property
    def keys(self) -> AclRpcHook:
        found = Credentials.from_file(self.home / "conf" / "tools.yml")
        assert found is not None
        return found.hook()

    def admin(self, *rpc_hooks: AclRpcHook) -> AdminClient:
        return AdminClient(self.namesrv_addr, rpc_hooks=rpc_hooks, tls=self.tls)

    def mqadmin(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run mqadmin in a shell with the variables of conf/client.env, changed by `environ`."""
        changes = " ".join(f"{name}={value}" for name, value in environ.items())
        script = f'. "$1"; shift; {changes} exec "$@"'
        program = (sys.executable, "-m", "core_broker.mqadmin", *arguments)
        return subprocess.run(
            ["/bin/sh", "-c", script, "sh", str(self.home / "conf" / "client.env"), *program],
            cwd=ROOT,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def first_output(home: Path) -> str:
    """The terminal output of the first start."""
    return (home / "first_start").read_text()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder after a start with --secure, which sent a message."""
    home = tmp_path_factory.mktemp("secured") / "home"
    with Gantry(home, "--secure", "--no-worker") as gantry:
        secured = Secured(gantry, home)
        asyncio.run(send(secured))
        assert gantry.end() == 0, gantry.text
    (home / "first_start").write_text(gantry.text)
    return home


@pytest.fixture(scope="module")
def secured(home: Path) -> Iterator[Secured]:
    """The second start, without an option."""
    with Gantry(home, CONSOLE_INGEST_MINUTES="0", SPARK_MASTER="local[1]") as gantry:
        yield Secured(gantry, home)
        assert gantry.end() == 0, gantry.text


async def send(secured: Secured) -> None:
    """Create a topic and send a traced message, as the printed user."""
    keys = [secured.keys]
    async with secured.admin(*keys) as admin:
        topic = TopicConfig(topic_name=TOPIC, read_queue_nums=1, write_queue_nums=1)
        await admin.create_topic(secured.broker_addr, topic)
    traces = TraceHook(rpc_hooks=keys, tls=secured.tls)
    async with Producer(
        "senders", secured.namesrv_addr, [traces], rpc_hooks=keys, tls=secured.tls
    ) as producer:
        await producer.send(Message(TOPIC, b"signed"))


def test_the_secret_key_is_shown_once_and_kept_private(
    home: Path, first_output: str, secured: Secured
) -> None:
    found = re.search(SECRET_LINE, first_output, re.M)
    assert found, first_output
    kept = home / "conf" / "tools.yml"
    assert found[1] in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert found[1] not in secured.gantry.text
    for log in (home / "logs").rglob("*.log"):
        assert found[1] not in log.read_text(errors="replace"), log


def test_the_name_server_refuses_brokers_without_keys(secured: Secured) -> None:
    """Routes are answered: the users of clients are on the broker."""

    async def ask() -> None:
        async with secured.admin() as admin:
            assert (await admin.topic_route(TOPIC)).broker_datas
            with pytest.raises(RequestRefused):
                await admin.namesrv_config(secured.namesrv_addr)

    asyncio.run(ask())


def test_the_settings_of_clients_are_in_a_file(secured: Secured) -> None:
    file = Path(secured.printed(r"^ +Java, Go, C\+\+, Node, Python: settings in (\S+)"))
    text = file.read_text()
    assert secured.namesrv_addr in text
    found = Credentials.from_file(secured.home / "conf" / "tools.yml")
    assert found is not None
    assert found.secret_key not in text


def test_a_client_without_tls_is_refused(secured: Secured) -> None:
    async def ask(addr: str) -> None:
        async with AdminClient(secured.namesrv_addr, rpc_hooks=[secured.keys]) as admin:
            await admin.runtime_info(addr)

    with pytest.raises(GantryError):
        asyncio.run(ask(secured.broker_addr))


@pytest.mark.parametrize("keys", [(), (AclRpcHook("admin", "guessed"),)], ids=["none", "wrong"])
def test_a_client_without_the_keys_is_refused(
    secured: Secured, keys: tuple[AclRpcHook, ...]
) -> None:
    async def attempts() -> None:
        async with secured.admin(*keys) as admin:
            addr = secured.broker_addr
            for attempt in (
                lambda: admin.send(addr, Message(TOPIC, b"unsigned"), 0),
                lambda: admin.pull(addr, TOPIC, 0, 0, 32),
                lambda: admin.create_topic(addr, TopicConfig(topic_name=TOPIC)),
                lambda: admin.runtime_info(addr),
            ):
                with pytest.raises(RequestRefused):
                    await attempt()

    asyncio.run(attempts())


def test_the_signed_message_of_the_first_start_is_read(secured: Secured) -> None:
    async def pull() -> None:
        async with secured.admin(secured.keys) as admin:
            pulled = await admin.pull(secured.broker_addr, TOPIC, 0, 0, 32)
            assert pulled.status is PullStatus.FOUND
            assert pulled.messages[0].body == b"signed"

    asyncio.run(pull())


def test_mqadmin_uses_the_variables_of_the_folder(secured: Secured) -> None:
    status = ("topicStatus", "-t", TOPIC)
    signed = secured.mqadmin(*status)
    assert signed.returncode == 0, signed.stderr
    assert "broker-a" in signed.stdout
    unsigned = secured.mqadmin(*status, MQADMIN_TOOLS_FILE="")
    assert unsigned.returncode != 0, unsigned.stdout
    plain = secured.mqadmin(*status, ROCKETMQ_TLS_ENABLE="false")
    assert plain.returncode != 0, plain.stdout


def test_the_commands_and_the_program_of_the_guide_work(secured: Secured) -> None:
    """The guide creates orders-service, docs/security.md billing; docs/mqadmin.md explains both."""
    page, conf = "howto/secure-a-cluster.md", {"var/conf": f"{secured.home}/conf"}
    printed = run_blocks(page, __file__, conf)
    assert printed.count("success") == 2
    assert "allowed" in printed
    environ = {"NAMESRV_ADDR": secured.namesrv_addr, "BILLING_SECRET_KEY": "a long secret"}
    run_program(page, __file__, conf, **environ)
    page = "security.md"
    printed = run_blocks(page, __file__, conf, typed="a long secret\na long secret\n")
    assert "#Broker Name" in printed
    assert "success" in printed
    run_program(page, __file__, conf, **environ)
    before = f". {secured.home}/conf/client.env"
    printed = run_blocks("mqadmin.md", __file__, {}, before=before)
    assert "allowed" in printed


def test_the_console_reads_and_sends(secured: Secured) -> None:
    api = Api(secured.url, secured.home)
    names = {topic["name"] for topic in api.request(f"topics?q={TOPIC}")["items"]}
    assert TOPIC in names, names
    sent = api.request("messages", {"topic": TOPIC, "body": "by the console", "trace": True})
    assert sent["items"][0]["status"] == "SEND_OK", sent


@pytest.mark.spark
def test_the_trace_job_reads_the_broker(secured: Secured) -> None:
    require_spark()
    asyncio.run(send(secured))
    api = Api(secured.url, secured.home)
    number = api.start_job()
    ended = api.wait_for(number, lambda job: job["state"] not in {"queued", "running"})
    assert ended["state"] == "succeeded", ended
    assert ended["done"] >= 1, ended
    assert not [*(secured.home / "run").glob("credentials-*")]


def test_secured_replicas_go_on_without_their_master(tmp_path: Path) -> None:
    """Replicas, controllers and console sign; the log is copied over TLS."""
    with Gantry(tmp_path, "--secure", "--replicas=3", "--no-worker") as gantry:
        secured = Secured(gantry, tmp_path)
        controllers = re.findall(r"^  controller +([^ ,]+:\d+)", gantry.text, re.M)
        assert len(controllers) == 3
        for addr in controllers:
            asyncio.run(refused_by_controller(secured, addr))
        whole_set(Api(secured.url, tmp_path))
        asyncio.run(eventually(lambda: sent(secured, b"before"), DEADLINE_S))
        port = secured.broker_addr.rpartition(":")[2]
        (master,) = [
            each for each in gantry.programs if each.environ().get("ROCKETMQ_LISTEN_PORT") == port
        ]
        master.kill()
        gantry.until(r"\[replica-[23]\] .*This broker is the master of broker-a in epoch")
        gantry.until(r"\[broker\] .*This broker is a slave of")
        asyncio.run(eventually(lambda: sent(secured, b"after"), DEADLINE_S))
        bodies = asyncio.run(eventually(lambda: stored(secured), DEADLINE_S))
        assert bodies >= {b"before", b"after"}
        assert gantry.end() == 0, gantry.text
        assert gantry.left_running() == []


async def refused_by_controller(secured: Secured, addr: str) -> None:
    """Without the keys nobody asks a controller; without TLS nobody reaches it."""
    async with secured.admin() as unsigned:
        with pytest.raises(RequestRefused):
            await unsigned.controller_metadata([addr])
        with pytest.raises(RequestRefused):
            await unsigned.update_controller_config(addr, {"electMasterMaxRetryCount": "9"})
    async with AdminClient(secured.namesrv_addr, rpc_hooks=[secured.keys]) as plain:
        with pytest.raises(GantryError):
            await plain.controller_metadata([addr])


def whole_set(api: Api) -> None:
    """Wait until the console shows three replicas in sync, and controllers that answer."""
    api.replicas_in_sync()
    (group,) = api.request("controllers")["items"]
    roles = sorted(each["role"] for each in group["controllers"])
    assert roles == ["follower", "follower", "leader"]


async def sent(secured: Secured, body: bytes) -> bool:
    """Send a message of the printed user; False when not every replica has it."""
    producer = Producer("senders", secured.namesrv_addr, rpc_hooks=[secured.keys], tls=secured.tls)
    with suppress(GantryError):
        async with producer:
            result = await producer.send(Message(TOPIC, body), timeout_ms=SEND_MS_MAX)
            return result.status is SendStatus.SEND_OK
    return False


async def stored(secured: Secured) -> set[bytes]:
    """The bodies of the topic at the new master; empty while the name server has the old one."""
    with suppress(GantryError):
        async with secured.admin(secured.keys) as admin:
            route = await admin.topic_route(TOPIC)
            addr = route.broker_datas[0].broker_addrs.get(0, secured.broker_addr)
            queues = route.queue_datas[0].read_queue_nums if addr != secured.broker_addr else 0
            pulled = [await admin.pull(addr, TOPIC, queue, 0, 32) for queue in range(queues)]
            return {message.body for each in pulled for message in each.messages}
    return set()


def test_no_secure_opens_the_cluster_for_one_start(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "home"
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("run", "*.sock"))

    async def ask(addr: str) -> None:
        async with AdminClient(addr) as admin:
            assert (await admin.topic_route(TRACE_TOPIC)).broker_datas

    with Gantry(copy, "--no-secure", "--no-worker") as gantry:
        gantry.until("^  access +OPEN")
        gantry.until_ready()
        found = re.search(r"^  name server +([^ ,]+:\d+)", gantry.text, re.M)
        assert found
        asyncio.run(ask(found[1]))
        assert gantry.end() == 0, gantry.text
