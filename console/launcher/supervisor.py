"""Runs all programs: starts in order, restarts after crashes, stops in order.

One task per service (`_keep`) owns the service's child. Shared state of the tasks: `_settled`, an
event per service, set when the service is ready or off; `_ready`, the names of ready services;
`_failure`, the first fatal error; `_stop`, the request to stop.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from console.launcher.child import Child
from console.launcher.errors import StartError
from console.launcher.logs import ProgramLog
from console.launcher.service import Service
from console.launcher.terminal import Relay, Say

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WAITING_REPORT_INTERVAL_S = 15.0  # interval of reports about services that are not ready


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """Limits and delays of restarts after a crash."""

    restarts_max: int = 5
    delay_first_s: float = 1.0
    delay_max_s: float = 30.0
    steady_after_s: float = 60.0  # an uptime that resets the number of restarts
    delay_killed_s: float = 10.0  # after `Supervisor.kill`

    def delay_s(self, restarts: int) -> float:
        return float(min(self.delay_first_s * 2**restarts, self.delay_max_s))


class Supervisor:
    """Supervises all services; call `run` once, in the event loop of the main thread."""

    def __init__(
        self,
        services: Sequence[Service],
        *,
        log_folder: Path,
        say: Say,
        policy: RestartPolicy | None = None,
    ) -> None:
        self._services = services
        self._say = say
        self._log_folder = log_folder
        self._policy = policy or RestartPolicy()
        self._logs = {service.name: self._log_of(service) for service in services}
        self._settled = {service.name: asyncio.Event() for service in services}
        self._ready: set[str] = set()
        self._children: dict[str, Child] = {}
        #: Names of programs that `kill` ended.
        self._killed: set[str] = set()
        self._stop = asyncio.Event()
        self._failure: StartError | None = None

    def _log_of(self, service: Service) -> ProgramLog:
        path = None if service.private_output else self._log_folder / f"{service.name}.log"
        relay = Relay(service.name, self._say)
        return ProgramLog(path, relay, important=service.important)

    def request_stop(self) -> None:
        """Stop all programs in order; kill all programs at the second call."""
        if not self._stop.is_set():
            self._say("Stopping; Ctrl-C again to stop at once.")
            self._stop.set()
            return
        for child in self._children.values():
            child.kill()

    def kill(self, name: str) -> bool:
        """End a ready program with SIGKILL; it starts again after `delay_killed_s`.

        Returns False when the program does not run. The kill does not count as a crash.
        """
        if name not in self._ready or name in self._killed or self._stop.is_set():
            return False
        self._killed.add(name)
        self._say(f"[{name}] is killed now, and starts again later.")
        self._children[name].kill()
        return True

    async def run(self, on_ready: Callable[[frozenset[str]], None]) -> None:
        """Run until a stop is requested; `on_ready` gets the names of the ready services.

        Raises StartError when a needed program does not start or keeps crashing. No program is left
        running on return, also after an error.
        """
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.request_stop)
        keepers = [
            asyncio.create_task(self._keep(service), name=f"keeper of {service.name}")
            for service in self._services
        ]
        try:
            await self._until_all_settled()
            if not self._stop.is_set():
                on_ready(frozenset(self._ready))
                await self._stop.wait()
        finally:
            self._stop.set()
            for keeper in keepers:
                keeper.cancel()
            ended = await asyncio.gather(*keepers, return_exceptions=True)
            await self._stop_all()
            for log in self._logs.values():
                log.close()
            for number in SIGNALS:
                loop.remove_signal_handler(number)
        for problem in (*ended, self._failure):
            if isinstance(problem, Exception):
                raise problem

    async def _until_all_settled(self) -> None:
        settled = asyncio.gather(*(event.wait() for event in self._settled.values()))
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            while not settled.done() and not stop.done():
                await asyncio.wait(
                    (settled, stop),
                    timeout=WAITING_REPORT_INTERVAL_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not settled.done() and not stop.done():
                    self._say_what_is_missing()
        finally:
            stop.cancel()
            settled.cancel()
            with suppress(asyncio.CancelledError):
                await settled

    def _say_what_is_missing(self) -> None:
        for name, event in self._settled.items():
            if not event.is_set() and name in self._children:
                last = self._logs[name].last_lines[-1:]
                self._say(f"Waiting for {name}" + (f", which says: {last[0]}" if last else "."))

    async def _keep(self, service: Service) -> None:
        """Run one service until the end of `run`."""
        try:
            for name in service.after:
                await self._settled[name].wait()
                if name not in self._ready:
                    self._give_up(service, f"{service.name} is not started, for {name} is off.")
                    return
            await self._run_and_restart(service, self._logs[service.name])
        except Exception:
            self._stop.set()  # `run` raises the error after all programs have stopped
            raise
        finally:
            self._settled[service.name].set()

    async def _run_and_restart(self, service: Service, log: ProgramLog) -> None:
        restarts = 0
        while True:
            began = time.monotonic()
            ended = await self._run_once(service, log)
            if ended is None:
                return
            was_killed = service.name in self._killed
            if was_killed or time.monotonic() - began >= self._policy.steady_after_s:
                restarts = 0
            never_ran = service.needed and service.name not in self._ready
            if never_ran or restarts >= self._policy.restarts_max:
                self._give_up(service, describe_end(service, ended, log))
                return
            policy = self._policy
            delay_s = policy.delay_killed_s if was_killed else policy.delay_s(restarts)
            self._say(describe_end(service, ended, log))
            self._say(f"[{service.name}] starting it again in {delay_s:g} s.")
            self._settled[service.name].set()
            await asyncio.sleep(delay_s)
            self._killed.discard(service.name)
            restarts += not was_killed

    async def _run_once(self, service: Service, log: ProgramLog) -> str | None:
        """Run the program until exit; return the ending, None for a completed one-time step."""
        child = Child(service, log)
        began = time.monotonic()
        try:
            await child.start()
        except OSError as problem:
            return f"could not be started: {problem.strerror} ({service.command[0]})"
        self._children[service.name] = child
        try:
            if await child.until_ready():
                self._ready.add(service.name)
                state = "done" if service.once else "ready"
                self._say(f"[{service.name}] {state} after {time.monotonic() - began:.1f} s")
                self._settled[service.name].set()
                if service.once:
                    return None
        except TimeoutError:
            if service.needed:
                await child.stop()
                return f"did not become ready within {service.ready_timeout_s:g} s"
            self._say(f"[{service.name}] not ready yet. {service.when_off}")
            self._settled[service.name].set()
        return ending(await child.wait())

    def _give_up(self, service: Service, reason: str) -> None:
        self._ready.discard(service.name)
        if self._failure is not None:
            return  # report only the first failure, not the consequences
        if service.needed:
            self._failure = StartError(f"{reason}\n{service.hint}".rstrip())
            self._stop.set()
        else:
            self._say(reason)
            self._say(f"[{service.name}] off. {service.when_off}")

    async def _stop_all(self) -> None:
        for rank in sorted({service.stop_rank for service in self._services}):
            children = [
                child for child in self._children.values() if child.service.stop_rank == rank
            ]
            await asyncio.gather(*(self._stop_one(child) for child in children))

    async def _stop_one(self, child: Child) -> None:
        if not await child.stop():
            grace_s = child.service.stop_grace_s
            self._say(f"[{child.service.name}] did not stop within {grace_s:g} s and was killed.")


def ending(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def describe_end(service: Service, ended: str, log: ProgramLog) -> str:
    """Return ending and last lines of a program, for the terminal."""
    lines = [f"[{service.name}] {ended}."]
    if log.last_lines and not service.private_output:
        lines.append("Its last lines:")
        lines += [f"    {line}" for line in log.last_lines]
    return "\n".join(lines)
