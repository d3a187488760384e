"""Fixtures that start foreign clients."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.compat import installing
from tests.compat.foreign import ForeignClient
from tests.compat.kinds import TITLES
from tests.compat.secured import Encryption, SecuredCluster
from tests.support.cluster import Cluster, Program

#: Maximum number of client processes per test.
ROLES_MAX = 4
#: Delay of level 3, the level of the first retry, seconds. RocketMQ's default table has 10 s.
LEVEL_3_SECONDS = 2
#: Non-default settings of the broker that the tests of this folder share.
SETTINGS = {
    "message_delay_level": " ".join(["1s", "1s", f"{LEVEL_3_SECONDS}s"] + ["3s"] * 15),
    "enable_property_filter": True,
    "transaction_time_out": 1_000,
    "transaction_check_interval": 1_000,
    "trace_topic_enable": True,
}
#: Eighteen delay levels, like the default table; with no delay, sixteen retries take seconds.
SHORT_LEVELS = " ".join(["0s"] * 18)
#: Kinds whose process serves several tests, because a Java virtual machine takes seconds to start.
REUSED = ("java", "java5")
#: Maximum number of idle processes per kind.
IDLE_MAX = 3


class Pool:
    """Idle client processes, kept for the next test."""

    def __init__(self, folder: Path, **variables: str) -> None:
        """The processes have the environment `variables`, too."""
        self._folder = folder
        self._variables = variables
        self._idle: dict[str, list[ForeignClient]] = {}
        self._started = 0

    def take(self, kind: str, *, fresh: bool = False) -> ForeignClient:
        """Return a client that accepts commands; with `fresh`, one from a new process."""
        if (idle := self._idle.get(kind)) and not fresh:
            return idle.pop()
        self._started += 1
        # The libraries keep logs and offsets in the home folder.
        home = self._folder / f"{kind}-{self._started}"
        home.mkdir()
        environment = {**os.environ, **self._variables, "HOME": str(home)}
        return ForeignClient(COMMANDS[kind](environment), environment, home / "client.log")

    def give_back(self, kind: str, client: ForeignClient) -> None:
        """Shut a client down, and its process unless the next test can use the process."""
        idle = self._idle.setdefault(kind, [])
        if kind not in REUSED or len(idle) >= IDLE_MAX or client.of("printed"):
            client.stop()
        elif client.reset():
            idle.append(client)

    def stop_all(self) -> None:
        """Kill all idle processes."""
        for clients in self._idle.values():
            for client in clients:
                client.kill()


class Maker:
    """Starts clients of one kind, and stops all of them at the end of the test."""

    def __init__(
        self,
        kind: str,
        pool: Pool,
        namesrv: str,
        account: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Clients sign with the `account` (`account` and `secret`), if not empty."""
        self.kind = kind
        self.namesrv = namesrv
        self._account = account
        self._pool = pool
        self._running: list[ForeignClient] = []

    def start(self, *, fresh: bool = False) -> ForeignClient:
        """Start one client that accepts commands."""
        assert len(self._running) < ROLES_MAX
        self._running.append(self._pool.take(self.kind, fresh=fresh))
        return self._running[-1]

    def admin(self) -> ForeignClient:
        """Start a client for mqadmin commands, some of which work only once per process."""
        return self.start(fresh=True)

    def producer(self, group: str, **options: bool) -> ForeignClient:
        """Start a producer; the options are `transactions` and `trace`."""
        client = self.start()
        client.command(
            "produce", namesrv=self.namesrv, group=group, **(options | dict(self._account))
        )
        client.wait_for("ready")
        return client

    def consumer(
        self, group: str, topic: str, expression: str = "*", **options: bool
    ) -> ForeignClient:
        """Start a push consumer; with `fails`, its listener fails for every message.

        Other options: `orderly`, `broadcasting`, `sql` (the expression is SQL92), `replies`,
        `trace` and `assigned`.
        """
        client = self.start()
        client.command(
            "consume",
            namesrv=self.namesrv,
            group=group,
            topic=topic,
            expression=expression,
            **(options | dict(self._account)),
        )
        client.wait_for("ready")
        return client

    def stop_all(self) -> None:
        """Shut all clients down; a process that does not end in time is killed."""
        while self._running:
            client = self._running.pop()
            if client.is_running:
                self._pool.give_back(self.kind, client)

    def kill_all(self) -> None:
        """Kill the processes of all clients."""
        for client in self._running:
            client.kill()


def _cpp(environment: dict[str, str]) -> list[str]:
    return [str(installing.cpp_python()), str(installing.CLIENTS / "cpp_client.py")]


def _node(environment: dict[str, str]) -> list[str]:
    environment["NODE_PATH"] = str(installing.node_modules())
    return ["node", str(installing.CLIENTS / "node_client.js")]


def _java(environment: dict[str, str], version: str = installing.JAVA_VERSION) -> list[str]:
    home = Path(environment["HOME"])
    # Without these files mqadmin prints a stack trace before every command, and RocketMQ 5 writes
    # long logs.
    (home / "conf").mkdir(exist_ok=True)
    for name in ("logback_tools.xml", "rmq.tools.logback.xml"):
        (home / "conf" / name).write_text('<configuration><root level="OFF"/></configuration>')
    folders = (f"-Duser.home={home}", f"-Drocketmq.home.dir={home}")
    speed = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return ["java", *speed, *folders, "-cp", installing.java_classpath(version), "JavaClient"]


def _java5(environment: dict[str, str]) -> list[str]:
    return _java(environment, installing.JAVA5_VERSION)


def _go(environment: dict[str, str]) -> list[str]:
    return [str(installing.go_client())]


def _rust(environment: dict[str, str]) -> list[str]:
    return [str(installing.rust_client())]


COMMANDS: dict[str, Callable[[dict[str, str]], list[str]]] = {
    "cpp": _cpp,
    "node": _node,
    "java": _java,
    "java5": _java5,
    "go": _go,
    "rust": _rust,
}
AVAILABLE: dict[str, Callable[[], object]] = {
    "cpp": installing.cpp_python,
    "node": installing.node_modules,
    "java": installing.java_classpath,
    "java5": lambda: installing.java_classpath(installing.JAVA5_VERSION),
    "go": installing.go_client,
    "rust": installing.rust_client,
}


#: Client kind → reason of a failed installation, which further tests do not repeat.
_MISSING: dict[str, str] = {}


def require(kind: str) -> None:
    """Skip the test, with the reason, when the client cannot be installed."""
    try:
        if kind not in _MISSING:
            AVAILABLE[kind]()
    except installing.CannotInstall as reason:
        _MISSING[kind] = str(reason)
    if kind in _MISSING:
        pytest.skip(f"{TITLES[kind]}: {_MISSING[kind]}")


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A name server and a broker for all tests of this folder; topics differ per test."""
    with Cluster(tmp_path_factory.mktemp("compat-cluster"), **SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """Processes of clients, shared by the tests of a session."""
    shared = Pool(tmp_path_factory.mktemp("clients"))
    try:
        yield shared
    finally:
        shared.stop_all()


class SecuredClusters:
    """Clusters with access control, started when first used; the brokers have SHORT_LEVELS."""

    def __init__(self, stack: ExitStack, factory: pytest.TempPathFactory) -> None:
        self.encryption = Encryption(factory.mktemp("certificates"))
        self._stack = stack
        self._factory = factory
        self._started: dict[tuple[str, bool, bool], SecuredCluster] = {}

    def get(
        self, generation: str, *, has_tls: bool = False, is_namesrv_open: bool = False
    ) -> SecuredCluster:
        """Return the cluster; the name server of ACL 1.0 has no accounts in any case."""
        key = (generation, has_tls, is_namesrv_open)
        if key not in self._started:
            cluster = SecuredCluster(
                generation,
                self._factory.mktemp("secured"),
                self.encryption if has_tls else None,
                is_namesrv_open=is_namesrv_open,
                **(SETTINGS | {"message_delay_level": SHORT_LEVELS}),
            )
            self._started[key] = self._stack.enter_context(cluster)
        return self._started[key]


@pytest.fixture(scope="session")
def secured_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredClusters]:
    """Clusters with access control; topics differ per test."""
    with ExitStack() as stack:
        yield SecuredClusters(stack, tmp_path_factory)


@pytest.fixture(scope="session")
def encrypting_pool(
    secured_clusters: SecuredClusters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pool]:
    """Processes of Java clients with TLS."""
    shared = Pool(tmp_path_factory.mktemp("encrypting"), **secured_clusters.encryption.java)
    try:
        yield shared
    finally:
        shared.stop_all()


@pytest.fixture
def start_clients(
    pool: Pool, record_property: Callable[[str, object], None]
) -> Iterator[Callable[[str, str], Maker]]:
    """Return a function (kind, name server) -> Maker."""
    with client_makers(pool, record_property) as begin:
        yield begin


@contextmanager
def client_makers(
    pool: Pool,
    record_property: Callable[[str, object], None],
    account: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Callable[[str, str], Maker]]:
    """Yield a function (kind, name server) -> Maker; stop the clients at the end."""
    makers: list[Maker] = []

    def begin(kind: str, namesrv: str) -> Maker:
        record_property("client", kind)
        require(kind)
        makers.append(Maker(kind, pool, namesrv, account))
        return makers[-1]

    try:
        yield begin
        for maker in makers:
            maker.stop_all()
    finally:
        for maker in makers:
            maker.kill_all()


@pytest.fixture
def namesrv_addr(tmp_path: Path) -> Iterator[str]:
    """The address of a Gantry name server."""
    program = Program("namesrv", tmp_path)
    program.start(
        {
            "listen_port": 0,
            "http_port": 0,
            "bind_address": "127.0.0.1",
            "kv_config_path": tmp_path / "kvConfig.json",
            "config_store_path": tmp_path / "namesrv.properties",
        }
    )
    yield f"127.0.0.1:{program.port('remoting')}"
    program.stop()


@pytest.fixture(params=installing.JAVA_BROKER_VERSIONS)
def version(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> str:
    """A version of the Java broker; skips the test, with the reason, without an installation."""
    version: str = request.param
    kind = f"java-broker-{version}"
    record_property("client", kind)
    try:
        installing.java_broker_classpath(version)
    except installing.CannotInstall as reason:
        pytest.skip(f"{TITLES[kind]}: {reason}")
    return version


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder as `compat`; the first test of a client waits for a build."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("compat")
            if "[rust" in item.name:
                item.add_marker(pytest.mark.timeout(installing.RUST_SECONDS_MAX + 120))
            elif item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 120))
