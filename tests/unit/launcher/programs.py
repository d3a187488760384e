"""Small real programs for the supervisor, and waits for terminal output."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from console.launcher.service import Service
from console.launcher.supervisor import RestartPolicy, Supervisor

DEADLINE_S = 90.0
POLL_S = 0.02
AT_ONCE = RestartPolicy(restarts_max=2, delay_first_s=0.01, delay_max_s=0.01)

# Prints a line, then waits for SIGTERM.
SLEEPER = "print('up', flush=True)\nimport signal\nsignal.pause()"
STUBBORN = (
    "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('up', flush=True)\nwhile True: signal.pause()"
)


def script(source: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", source)


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds; fail with `what` after the deadline."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise AssertionError(f"not within {DEADLINE_S:g} s: {what}") from None


def is_alive(pid: int) -> bool:
    """Return True for a running process, False for a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Run:
    """A supervisor under test with terminal output, readiness and result."""

    def __init__(self, tmp_path: Path, *services: Service, policy: RestartPolicy = AT_ONCE):
        self.said: list[str] = []
        self.up: frozenset[str] | None = None
        self.supervisor = Supervisor(
            services, log_folder=tmp_path, say=self.said.append, policy=policy
        )
        self.task = asyncio.create_task(self.supervisor.run(self._on_ready))

    def _on_ready(self, names: frozenset[str]) -> None:
        self.up = names

    @property
    def text(self) -> str:
        return "\n".join(self.said)

    async def until_ready(self) -> frozenset[str]:
        await eventually(lambda: self.up is not None or self.task.done(), "ready line")
        if self.task.done():
            await self.task
        assert self.up is not None, self.text
        return self.up

    async def stop(self) -> None:
        self.supervisor.request_stop()
        async with asyncio.timeout(DEADLINE_S):
            await self.task
