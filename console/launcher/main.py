"""Entry point of `manage.py up` and `manage.py demo`."""

import asyncio
import os
import platform
import tomllib
from collections.abc import Sequence
from pathlib import Path

from console.launcher import java, prepare
from console.launcher.child import watch_without_threads
from console.launcher.errors import StartError
from console.launcher.home import claimed_home
from console.launcher.options import Options, parse_options
from console.launcher.ports import Ports, choose_ports
from console.launcher.probes import bracketed
from console.launcher.services import Plan, RedisPlan, plan_redis
from console.launcher.supervisor import Supervisor
from console.launcher.terminal import say

PROJECT_FILE = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str], *, demo: bool = False) -> int:
    """Run until a stop is requested and return the exit code."""
    options = parse_options(arguments, demo=demo)
    try:
        with claimed_home(options.home):
            asyncio.run(run(options))
    except StartError as problem:
        say(f"Gantry stopped: {problem}")
        return problem.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    say("Gantry has stopped; no program is left running.")
    return 0


async def run(options: Options) -> None:
    watch_without_threads()
    ports = choose_ports(options)
    plan = Plan(options, ports, plan_redis(os.environ, ports.redis))
    services = plan.services(set_up=prepare.is_needed(options.home))
    for line in introduction(options, ports, plan.redis):
        say(line)
    supervisor = Supervisor(services, log_folder=options.home / "logs", say=say)
    url = f"http://{bracketed(options.host)}:{ports.console}"
    await supervisor.run(lambda _: say(f"Gantry is ready: {url}"))


def introduction(options: Options, ports: Ports, redis_plan: RedisPlan) -> list[str]:
    """Return the start-up lines: one per listener and folder, and notices of missing functions."""
    host = bracketed(options.host)
    lines = [
        f"Gantry {project_version()} on Python {platform.python_version()}",
        f"  data folder  {options.home}",
        f"  settings     {options.home / 'conf' / 'broker.conf'}",
        f"  logs         {options.home / 'logs'}",
        f"  name server  {host}:{ports.namesrv}, health and metrics on port {ports.namesrv_http}",
        f"  broker       {host}:{ports.broker} and {ports.broker_vip} (VIP), "
        f"health and metrics on port {ports.broker_http}",
        f"  console      http://{host}:{ports.console}",
    ]
    if redis_plan.server is not None:
        lines.append(f"  valkey       127.0.0.1:{ports.redis}")
    elif redis_plan.url:
        lines.append("  redis        as REDIS_URL says")
    if options.with_demo:
        lines.append(
            "  demo         a shop; its group accounting rejects some payments on purpose, see the "
            "page Dead letters"
        )
    notices = [redis_plan.notice, java.notice() if options.with_worker else None]
    return lines + [f"  note: {notice}" for notice in notices if notice]


def project_version() -> str:
    with PROJECT_FILE.open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])
