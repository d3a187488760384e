"""Signals to a supervisor in a separate process, and the effect on the programs."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from tests.unit.launcher.programs import DEADLINE_S, SLEEPER, STUBBORN, eventually, is_alive

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import asyncio, os, re, sys
from pathlib import Path
from console.launcher.child import watch_without_threads
from console.launcher.service import Service
from console.launcher.supervisor import Supervisor
from console.launcher.terminal import say

source = "import os; print('pid', os.getpid(), flush=True)\\n" + {source!r}
service = Service(
    name="program",
    command=(sys.executable, "-S", "-c", source),
    ready_line=re.compile("^up$"),
    important=re.compile("^pid"),
    stop_grace_s={grace_s},
)
async def main():
    watch_without_threads()
    supervisor = Supervisor([service], log_folder=Path({folder!r}), say=say)
    await supervisor.run(lambda _: say("ready"))

asyncio.run(main())
say("stopped")
"""


@asynccontextmanager
async def supervised(
    folder: Path, source: str = SLEEPER, grace_s: float = 10
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """Run PROGRAM until ready; yield the supervisor's process and the pid of the program."""
    program = PROGRAM.format(source=source, folder=str(folder), grace_s=grace_s)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            first = (await process.stdout.readline()).decode()
            assert (await process.stdout.readline()).startswith(b"[program] ready after ")
            assert await process.stdout.readline() == b"ready\n"
        yield process, int(first.split()[-1])
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_stops_everything(tmp_path: Path, number: signal.Signals) -> None:
    async with supervised(tmp_path) as (process, pid):
        process.send_signal(number)
        output, _ = await asyncio.wait_for(process.communicate(), DEADLINE_S)
        assert output.decode().splitlines()[-1] == "stopped"
        assert process.returncode == 0
        assert not is_alive(pid)


async def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    async with supervised(tmp_path, STUBBORN, grace_s=600) as (process, pid):
        assert process.stdout is not None
        process.send_signal(signal.SIGINT)
        stopping = await asyncio.wait_for(process.stdout.readline(), DEADLINE_S)
        assert b"Ctrl-C again" in stopping
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), DEADLINE_S)
        assert not is_alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
async def test_killing_the_supervisor_ends_its_programs(tmp_path: Path) -> None:
    async with supervised(tmp_path) as (process, pid):
        process.kill()
        await eventually(lambda: not is_alive(pid), "program ended after its supervisor was killed")


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
async def test_the_supervisor_has_no_threads_each_of_which_would_send_a_signal(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path) as (process, _):
        assert psutil.Process(process.pid).num_threads() == 1


async def test_ctrl_c_at_the_terminal_does_not_reach_the_programs_first(tmp_path: Path) -> None:
    async with supervised(tmp_path) as (process, pid):
        assert os.getsid(pid) != os.getsid(process.pid)
