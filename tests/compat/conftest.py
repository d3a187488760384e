"""Foreign clients as fixtures."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compat import installing
from tests.compat.foreign import ForeignClient
from tests.compat.summary import TITLES

ROLES_MAX = 4


class Maker:
    """Starts clients of one kind, and ends them all when the test is over."""

    def __init__(self, kind: str, folder: Path, namesrv: str) -> None:
        self.kind = kind
        self.namesrv = namesrv
        self._folder = folder
        self._running: list[ForeignClient] = []

    def start(self) -> ForeignClient:
        """Start one client that waits for commands."""
        assert len(self._running) < ROLES_MAX
        log = self._folder / f"{self.kind}-{len(self._running)}.log"
        # The libraries keep logs and offsets in the home folder.
        environment = {**os.environ, "HOME": str(self._folder)}
        client = ForeignClient(COMMANDS[self.kind](environment), environment, log)
        self._running.append(client)
        return client

    def producer(self, group: str) -> ForeignClient:
        """Start a producer."""
        client = self.start()
        client.tell("produce", namesrv=self.namesrv, group=group)
        client.wait_for("ready")
        return client

    def consumer(
        self, group: str, topic: str, expression: str = "*", *, fails: bool = False
    ) -> ForeignClient:
        """Start a push consumer; `fails` makes it fail every message."""
        client = self.start()
        client.tell(
            "consume",
            namesrv=self.namesrv,
            group=group,
            topic=topic,
            expression=expression,
            fails=fails,
        )
        client.wait_for("ready")
        return client

    def stop_all(self) -> None:
        """Shut all clients down; what a client cannot end by itself is killed."""
        for client in self._running:
            client.stop()

    def kill_all(self) -> None:
        """Leave no process behind."""
        for client in self._running:
            client.kill()


def _cpp(environment: dict[str, str]) -> list[str]:
    return [str(installing.cpp_python()), str(installing.CLIENTS / "cpp_client.py")]


def _node(environment: dict[str, str]) -> list[str]:
    environment["NODE_PATH"] = str(installing.node_modules())
    return ["node", str(installing.CLIENTS / "node_client.js")]


def _java(environment: dict[str, str]) -> list[str]:
    home = Path(environment["HOME"])
    # Without this file mqadmin prints a stack trace before every command.
    (home / "conf").mkdir(exist_ok=True)
    (home / "conf" / "logback_tools.xml").write_text(
        '<configuration><root level="OFF"/></configuration>'
    )
    folders = (f"-Duser.home={home}", f"-Drocketmq.home.dir={home}")
    return ["java", "-Xmx128m", *folders, "-cp", installing.java_classpath(), "JavaClient"]


COMMANDS: dict[str, Callable[[dict[str, str]], list[str]]] = {
    "cpp": _cpp,
    "node": _node,
    "java": _java,
}
AVAILABLE: dict[str, Callable[[], object]] = {
    "cpp": installing.cpp_python,
    "node": installing.node_modules,
    "java": installing.java_classpath,
}


def require(kind: str) -> None:
    """Skip the test, with the reason, when the client cannot be had."""
    try:
        AVAILABLE[kind]()
    except installing.CannotInstall as reason:
        pytest.skip(f"{TITLES[kind]}: {reason}")


@pytest.fixture
def start_clients(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> Iterator[Callable[[str, str], Maker]]:
    """Return a function (kind, name server) -> Maker."""
    makers: list[Maker] = []

    def begin(kind: str, namesrv: str) -> Maker:
        record_property("client", kind)
        require(kind)
        folder = tmp_path / kind
        folder.mkdir(exist_ok=True)
        makers.append(Maker(kind, folder, namesrv))
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
