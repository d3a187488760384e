"""The commands and files for three machines: docs/howto/run-three-replicas.md, docs/replication.md.

Each machine is a network namespace with the address of the documents, and a folder of its own as
/var/lib/gantry. Only the size of the commit log's files differs.
"""

import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from core_broker.client import AdminClient, Message, Producer
from core_broker.errors import GantryError
from tests.support.document_blocks import blocks_of
from tests.support.eventually import eventually
from tests.support.namespaces import Network, why_impossible
from tests.support.processes import stop_program
from tests.support.source_tree import ROOT

THIS = "tests/client/test_three_machines.py"
GUIDE, REPLICATION = "docs/howto/run-three-replicas.md", "docs/replication.md"
MACHINES = {f"n{number}": f"10.0.0.{number + 1}" for number in range(3)}
SET_UP = (
    "mount -t tmpfs none /var/lib && mkdir /var/lib/gantry && mount --bind data /var/lib/gantry"
)
WAIT_S = 120.0
SEND_TIMEOUT_MS = 30_000

pytestmark = pytest.mark.timeout(300)


class Machines:
    """Three machines, and what runs on them."""

    def __init__(self, folder: Path, network: Network, stack: ExitStack) -> None:
        self._folder, self._network, self._stack = folder, network, stack
        for name in MACHINES:
            (folder / name / "data").mkdir(parents=True)

    def write(self, page: str) -> None:
        """Write the files of a page on each machine, with the name of the machine."""
        for block in blocks_of(page):
            file = re.match(r"# (\w+\.conf)", block.code)
            if file and "10.0.0.1:9878" in block.code:
                for name in MACHINES:
                    text = block.code.replace("SelfId=n0", f"SelfId={name}")
                    (self._folder / name / file[1]).write_text(text)

    def start(self, command: str) -> None:
        """Run a command on each machine, until the end of the test."""
        python = str(Path(sys.executable).parent)
        for name in MACHINES:
            folder = self._folder / name
            with (folder / "output").open("ab") as output:
                process = subprocess.Popen(
                    [*self._network.command(name), "sh", "-c", f"{SET_UP} && exec {command}"],
                    cwd=folder,
                    env={
                        "PATH": f"{python}:/usr/sbin:/usr/bin:/sbin:/bin",
                        "PYTHONPATH": str(ROOT),
                        "ROCKETMQ_MAPPED_FILE_SIZE_COMMIT_LOG": str(16 * 1024 * 1024),
                    },
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            self._stack.callback(stop_program, process)

    def printed(self) -> str:
        outputs = [self._folder / name / "output" for name in MACHINES]
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in outputs)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    if reason := why_impossible():
        pytest.skip(reason)
    with Network(MACHINES, MACHINES) as network, ExitStack() as stack:
        yield Machines(tmp_path, network, stack)


def commands_of(page: str) -> list[str]:
    return [
        line
        for block in blocks_of(page)
        if block.runner == THIS
        for line in block.code.splitlines()
    ]


async def test_the_guide_makes_three_replicas_in_sync(machines: Machines) -> None:
    machines.write(GUIDE)
    commands = commands_of(GUIDE)
    assert len(commands) == 2
    for command in commands:
        machines.start(command)
    controllers = [f"{address}:9878" for address in MACHINES.values()]
    names = ";".join(f"{address}:9876" for address in MACHINES.values())
    async with AdminClient(names) as admin:

        async def are_in_sync() -> bool:
            try:
                found = await admin.sync_state_sets(controllers, ["broker-a"])
            except GantryError:
                return False
            replicas = found.replicas_info_table.get("broker-a")
            return replicas is not None and len(replicas.in_sync_replicas) == len(MACHINES)

        await in_time(machines, are_in_sync)

        async def is_sent() -> bool:
            try:
                async with Producer("machines", names) as producer:
                    await producer.send(Message("orders", b"1"), timeout_ms=SEND_TIMEOUT_MS)
            except GantryError:
                return False
            return True

        await in_time(machines, is_sent)


async def test_three_controllers_elect_their_leader(machines: Machines) -> None:
    machines.write(REPLICATION)
    [command] = commands_of(REPLICATION)
    machines.start(command)
    async with AdminClient(f"{MACHINES['n0']}:9876") as admin:

        async def have_leader() -> bool:
            try:
                found = await admin.controller_metadata([f"{MACHINES['n0']}:9878"])
            except GantryError:
                return False
            return bool(found.controller_leader_address)

        await in_time(machines, have_leader)


async def in_time(machines: Machines, is_so: Callable[[], Awaitable[bool]]) -> None:
    """Wait; a failure shows the output of the machines."""
    try:
        await eventually(is_so, WAIT_S)
    except AssertionError:
        pytest.fail(machines.printed())
