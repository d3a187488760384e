"""Foreign clients as fixtures."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compat import installing
from tests.compat.foreign import ForeignClient
from tests.compat.kinds import TITLES
from tests.support.cluster import Cluster

ROLES_MAX = 4
#: The delay of level 3, which is that of the first retry; 10 s in RocketMQ's own table.
LEVEL_3_SECONDS = 2
#: What the tests of this folder want of their shared broker, beside the defaults.
SETTINGS = {
    "message_delay_level": " ".join(["1s", "1s", f"{LEVEL_3_SECONDS}s"] + ["3s"] * 15),
    "enable_property_filter": True,
    "transaction_time_out": 1_000,
    "transaction_check_interval": 1_000,
    "trace_topic_enable": True,
}
#: A virtual machine takes seconds to start, so these are used again by the next test.
REUSED = ("java", "java5")
IDLE_MAX = 3


class Pool:
    """Processes of clients that have done one test and wait for the next."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._idle: dict[str, list[ForeignClient]] = {}
        self._started = 0

    def take(self, kind: str, *, fresh: bool = False) -> ForeignClient:
        """Return a client that waits for commands; a fresh one did nothing before."""
        if (idle := self._idle.get(kind)) and not fresh:
            return idle.pop()
        self._started += 1
        # The libraries keep logs and offsets in the home folder.
        home = self._folder / f"{kind}-{self._started}"
        home.mkdir()
        environment = {**os.environ, "HOME": str(home)}
        return ForeignClient(COMMANDS[kind](environment), environment, home / "client.log")

    def give_back(self, kind: str, client: ForeignClient) -> None:
        """Shut a client down, the process with it unless it can be used again."""
        idle = self._idle.setdefault(kind, [])
        if kind not in REUSED or len(idle) >= IDLE_MAX or client.of("printed"):
            client.stop()
        elif client.reset():
            idle.append(client)

    def stop_all(self) -> None:
        """Leave no process behind."""
        for clients in self._idle.values():
            for client in clients:
                client.kill()


class Maker:
    """Starts clients of one kind, and ends them all when the test is over."""

    def __init__(self, kind: str, pool: Pool, namesrv: str) -> None:
        self.kind = kind
        self.namesrv = namesrv
        self._pool = pool
        self._running: list[ForeignClient] = []

    def start(self, *, fresh: bool = False) -> ForeignClient:
        """Start one client that waits for commands."""
        assert len(self._running) < ROLES_MAX
        self._running.append(self._pool.take(self.kind, fresh=fresh))
        return self._running[-1]

    def admin(self) -> ForeignClient:
        """Start one for commands of mqadmin, some of which work once in the life of a process."""
        return self.start(fresh=True)

    def producer(self, group: str, **wishes: bool) -> ForeignClient:
        """Start a producer; wishes are `transactions` and `trace`."""
        client = self.start()
        client.tell("produce", namesrv=self.namesrv, group=group, **wishes)
        client.wait_for("ready")
        return client

    def consumer(
        self, group: str, topic: str, expression: str = "*", **wishes: bool
    ) -> ForeignClient:
        """Start a push consumer; `fails` makes it fail every message.

        Other wishes: `orderly`, `broadcasting`, `sql` (the expression is SQL92), `replies`, and
        `trace`.
        """
        client = self.start()
        client.tell(
            "consume",
            namesrv=self.namesrv,
            group=group,
            topic=topic,
            expression=expression,
            **wishes,
        )
        client.wait_for("ready")
        return client

    def stop_all(self) -> None:
        """Shut all clients down; what a client cannot end by itself is killed."""
        while self._running:
            client = self._running.pop()
            if client.is_running:
                self._pool.give_back(self.kind, client)

    def kill_all(self) -> None:
        """Leave no process behind."""
        for client in self._running:
            client.kill()


def _cpp(environment: dict[str, str]) -> list[str]:
    return [str(installing.cpp_python()), str(installing.CLIENTS / "cpp_client.py")]


def _node(environment: dict[str, str]) -> list[str]:
    environment["NODE_PATH"] = str(installing.node_modules())
    return ["node", str(installing.CLIENTS / "node_client.js")]


def _java(environment: dict[str, str], version: str = installing.JAVA_VERSION) -> list[str]:
    home = Path(environment["HOME"])
    # Without these files mqadmin prints a stack trace before every command, and 5.x logs much.
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


COMMANDS: dict[str, Callable[[dict[str, str]], list[str]]] = {
    "cpp": _cpp,
    "node": _node,
    "java": _java,
    "java5": _java5,
    "go": _go,
}
AVAILABLE: dict[str, Callable[[], object]] = {
    "cpp": installing.cpp_python,
    "node": installing.node_modules,
    "java": installing.java_classpath,
    "java5": lambda: installing.java_classpath(installing.JAVA5_VERSION),
    "go": installing.go_client,
}


#: Why a client cannot be had; what failed once is not tried again for every test.
_MISSING: dict[str, str] = {}


def require(kind: str) -> None:
    """Skip the test, with the reason, when the client cannot be had."""
    try:
        if kind not in _MISSING:
            AVAILABLE[kind]()
    except installing.CannotInstall as reason:
        _MISSING[kind] = str(reason)
    if kind in _MISSING:
        pytest.skip(f"{TITLES[kind]}: {_MISSING[kind]}")


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A name server and a broker for all tests of this folder; each uses topics of its own."""
    with Cluster(tmp_path_factory.mktemp("compat-cluster"), **SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """The processes that outlive a test."""
    made = Pool(tmp_path_factory.mktemp("clients"))
    try:
        yield made
    finally:
        made.stop_all()


@pytest.fixture
def start_clients(
    pool: Pool, record_property: Callable[[str, object], None]
) -> Iterator[Callable[[str, str], Maker]]:
    """Return a function (kind, name server) -> Maker."""
    makers: list[Maker] = []

    def begin(kind: str, namesrv: str) -> Maker:
        record_property("client", kind)
        require(kind)
        makers.append(Maker(kind, pool, namesrv))
        return makers[-1]

    try:
        yield begin
        for maker in makers:
            maker.stop_all()
    finally:
        for maker in makers:
            maker.kill_all()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what stands in this folder; a client is slow to start, so it gets more time."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("compat")
