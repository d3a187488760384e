"""Entry point of `manage.py up` and `manage.py demo`."""

import asyncio
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from console.launcher import java, prepare
from console.launcher.access import Access, is_secured, open_access
from console.launcher.brokers import count_brokers, further_names
from console.launcher.child import watch_without_threads
from console.launcher.demo_control import DemoControl
from console.launcher.demo_receiver import DemoReceiver
from console.launcher.errors import StartError
from console.launcher.home import claimed_home
from console.launcher.options import Options, parse_options
from console.launcher.ports import VIP_DISTANCE, Ports, choose_ports
from console.launcher.probes import bracketed
from console.launcher.replicas import check_replicas
from console.launcher.services import DemoAddresses, Plan, RedisPlan, namesrv_addr, plan_redis
from console.launcher.supervisor import Supervisor
from console.launcher.terminal import say
from console.project_files import project_version

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
    is_wanted = is_secured(options.home) if options.secure is None else options.secure
    check_replicas(options)
    ports = choose_ports(options, count_brokers(options, os.environ))
    access = open_access(options.home, options.host) if is_wanted else None
    control = await open_demo_control(options, ports)
    receiver = await open_demo_receiver(options)
    demo = DemoAddresses(control.text if control else "", receiver.url if receiver else "")
    redis_plan = plan_redis(os.environ, ports.redis)
    plan = Plan(options, ports, redis_plan, access, demo)
    services = plan.services(set_up=prepare.is_needed(options.home) or receiver is not None)
    if access:
        access.write_client_files(plan.namesrv_addr)
    for line in introduction(options, ports, plan.redis, access, demo.receiver):
        say(line)
    supervisor = Supervisor(services, log_folder=options.home / "logs", say=say)
    if control:
        control.kill = supervisor.kill
    url = f"http://{bracketed(options.host)}:{ports.console}"
    try:
        await supervisor.run(lambda _: say(f"Gantry is ready: {url}"))
    finally:
        for listener in (control, receiver):
            if listener:
                listener.close()


async def open_demo_control(options: Options, ports: Ports) -> DemoControl | None:
    """Open the switch that kills replicas; None except in a demo with replicas."""
    if not (options.with_demo and ports.replicas):
        return None
    names = {str(each.broker): f"replica-{n}" for n, each in enumerate(ports.replicas, 2)}
    control = DemoControl({str(ports.broker): "broker", **names}, namesrv_addr(options, ports))
    await control.start()
    return control


async def open_demo_receiver(options: Options) -> DemoReceiver | None:
    """Open the receiver of alarms of a demo; None without a worker, which sends the notices."""
    if not (options.with_demo and options.with_worker):
        return None
    receiver = DemoReceiver(say)
    await receiver.start()
    return receiver


def introduction(
    options: Options,
    ports: Ports,
    redis_plan: RedisPlan,
    access: Access | None,
    demo_receiver: str = "",
) -> list[str]:
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
        *(
            f"  {name}     {host}:{each.broker} and {each.broker - VIP_DISTANCE} (VIP), "
            f"health and metrics on port {each.http}"
            for name, each in zip(further_names(1 + len(ports.brokers)), ports.brokers, strict=True)
        ),
        *(
            f"  replica {number}    {host}:{each.broker}, health and metrics on port {each.http}"
            for number, each in enumerate(ports.replicas, 2)
        ),
        *(
            f"  controller   {host}:{each.port}, {each.raft} (Raft), "
            f"health and metrics on port {each.http}"
            for each in ports.controllers
        ),
        f"  console      http://{host}:{ports.console}",
    ]
    if redis_plan.server is not None:
        lines.append(f"  valkey       127.0.0.1:{ports.redis}")
    elif redis_plan.url:
        lines.append("  redis        as REDIS_URL says")
    lines += access_lines(options.home, access)
    if options.with_demo:
        lines.append(
            "  demo         a shop; its group accounting rejects some payments on purpose, see the "
            "page Dead letters"
        )
        if demo_receiver:
            lines.append(f"               notices of alarms appear here, and at {demo_receiver}")
        if ports.replicas:
            lines.append("               to see a failover, kill the master on the page Replicas")
    notices = [redis_plan.notice, java.notice() if options.with_worker else None]
    return lines + [f"  note: {notice}" for notice in notices if notice]


def access_lines(home: Path, access: Access | None) -> list[str]:
    """Say who may connect, and with which files; the secret key only at the start that made it."""
    if access is None:
        opened = "  access       OPEN at this start: no access control, no TLS required"
        return [opened] if is_secured(home) else []
    lines = [
        f"  access       signed requests over TLS; user {access.credentials.access_key}, "
        f"keys in {access.tools_file}",
        f"  clients      trust {access.trust_cert}; for mqadmin: . {access.client_env_file}",
        f"               Java, Go, C++, Node, Python: settings in {access.client_guide_file}",
    ]
    if access.is_new:
        lines.append(f"  secret key   {access.credentials.secret_key}   (shown once)")
    return lines
