"""Settings from environment variables, read once and validated together.

`settings.py` holds Django's settings; this module holds the validation. All errors are reported
together, each with variable, value and expected format.
"""

import os
import re
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar
from zoneinfo import available_timezones

import psutil

from console.alarm_settings import AlarmSettings, read_alarm_settings
from console.history_settings import HistorySettings, read_history_settings
from console.identity_settings import IdentitySettings, read_identity_settings
from console.project_files import HOME_DEFAULT
from core_broker.client import ClientTls, Credentials
from core_broker.errors import ClientError
from core_broker.limits import PORT_MAX
from core_broker.monitoring.access import UnusableToken, read_token

T = TypeVar("T")

NAMESRV_DEFAULT = "127.0.0.1:9876"
CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")
PREFIX = re.compile(r"(/[A-Za-z0-9._~-]{1,64}){1,8}")
REDIS_SCHEMES = ("redis://", "rediss://", "unix://")
DATABASE_SCHEMES = ("sqlite:", "postgres:", "postgresql:", "pgsql:")
# Numeric settings of jobs, analytics and load: minimum, maximum, default.
NUMBERS = {
    "INGEST_MINUTES": (0, 24 * 60, 10),
    "COMPACT_HOURS": (0, 24 * 31, 24),
    "LAKE_DAYS": (1, 3_650, 30),
    "SPARK_IDLE_MINUTES": (0, 24 * 60, 10),
    "SPARK_MEMORY_MB": (512, 1_000_000, 1_024),
    "SIDE_PORT": (0, PORT_MAX, 0),
    "JOB_FILE_DAYS": (1, 365, 7),
    "JOB_FILES_MB": (1, 1_000_000, 1_024),
    "ANALYTICS_MEMORY_MB": (64, 1_000_000, 512),
    "ANALYTICS_THREADS": (1, 64, 2),
    "ANALYTICS_SECONDS": (1, 600, 15),
    "EVALUATION_SECONDS": (0, 600, 12),
    "REQUESTS_MAX": (1, 1_000, 32),
    "REQUESTS_WAITING_MAX": (0, 100_000, 256),
    "WEBSOCKETS_MAX": (1, 100_000, 512),
}
# Thresholds of the health findings, as the fields of `console.services.findings.thresholds`.
FINDING_NUMBERS = {
    "LAG_S": (1, 30 * 86_400, 300),
    "DISK_PERCENT": (1, 100, 75),
    "DISK_CRITICAL_PERCENT": (1, 100, 90),
    "DISK_HOURS": (0, 24 * 30, 24),
    "REPLICA_MB": (1, 1_000_000, 64),
    "CLOCK_S": (1, 86_400, 5),
    "STUCK_S": (20, 1_500, 120),
    "CERTIFICATE_DAYS": (1, 365, 30),
}
AUDIT_DAYS_DEFAULT = 365
AUDIT_DAYS_MAX = 3_650
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"", "0", "false", "no", "off"})


class EnvironmentProblem(ValueError):
    """Invalid environment variables; the text names each variable with the value."""


MARKS = "CONSOLE_CLUSTER_MARKS"
READ_ONLY = "CONSOLE_READ_ONLY_CLUSTERS"
TLS = "CONSOLE_CLUSTER_TLS"
CREDENTIALS = "CONSOLE_CLUSTER_CREDENTIALS"
SECOND_FACTOR_WORDS = ("off", "optional", "required")
MARK_COLORS = ("blue", "green", "yellow", "orange", "red", "purple", "teal")
MARK_ENDS: tuple[list[str], ...] = ([], ["production"])


@dataclass(frozen=True, slots=True)
class ClusterMark:
    """Colour mark of a cluster, and the production badge."""

    color: str
    production: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The console's own settings."""

    home: Path
    clusters: Mapping[str, str]
    clusters_from: str
    cluster_marks: dict[str, ClusterMark]
    read_only_clusters: frozenset[str]
    #: The file with the TLS settings of a cluster's connections, and the settings.
    cluster_tls: dict[str, tuple[str, ClientTls]]
    #: Keys that sign the requests to a cluster; clusters without a file have keys in the database.
    cluster_credentials: dict[str, Credentials]
    redis_url: str
    database_url: str
    secret_key: str
    spark_master: str
    #: Port, token and name server of the switch of `manage.py demo --replicas`; "" elsewhere.
    demo_control: str
    #: Folder or address of the documentation site; "" for the folder that `make site` builds.
    documentation: str
    ingest_minutes: int
    compact_hours: int
    lake_days: int
    spark_idle_minutes: int
    spark_memory_mb: int
    side_port: int
    job_file_days: int
    job_files_mb: int
    analytics_memory_mb: int
    analytics_threads: int
    analytics_seconds: int
    history: HistorySettings
    evaluation_seconds: int
    alarms: AlarmSettings
    identity: IdentitySettings
    requests_max: int
    requests_waiting_max: int
    websockets_max: int
    finding_thresholds: Mapping[str, int]
    audit_days: int
    time_zone: str
    prefix: str
    allowed_hosts: tuple[str, ...]
    metrics_token: bytes
    trusted_origins: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    https: bool
    second_factor: str
    debug: bool


@dataclass(slots=True)
class _Reader:
    environ: Mapping[str, str]
    problems: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        return self.environ.get(name, "").strip()

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(word for word in re.split(r"[,;\s]+", self.text(name)) if word)

    def flag(self, name: str) -> bool:
        word = self.text(name).lower()
        if word not in TRUE_WORDS | FALSE_WORDS:
            self.complain(name, word, "true or false")
        return word in TRUE_WORDS

    def number(self, name: str, least: int, most: int, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        usable = text.isascii() and text.isdigit() and len(text) < 10
        if not usable or not least <= int(text) <= most:
            self.complain(name, text, f"a number from {least} to {most}")
            return default
        return int(text)

    def url(self, name: str, schemes: tuple[str, ...]) -> str:
        value = self.text(name)
        if value and not value.startswith(schemes):
            # The value may contain a password; the message repeats only the scheme.
            self.complain(name, value.partition(":")[0] + ":…", "one of " + ", ".join(schemes))
        return value

    def networks(self, name: str) -> tuple[str, ...]:
        words = self.words(name)
        for word in words:
            if not is_network(word):
                self.complain(name, word, "an address or a network such as 10.0.0.0/8")
        return words

    def complain(self, name: str, value: str, expected: str) -> None:
        self.problems.append(f"{name} = {value!r}: expected {expected}")


def read_environment(environ: Mapping[str, str] = os.environ) -> Environment:
    """Read and validate all variables; EnvironmentProblem lists all errors."""
    read = _Reader(environ)
    clusters, clusters_from = _clusters(read)
    cluster_marks = _marks(read, clusters)
    read_only_clusters = frozenset(read.words(READ_ONLY))
    for unknown in sorted(read_only_clusters - set(clusters)):
        read.complain(READ_ONLY, unknown, f"names of {clusters_from}")
    cluster_tls = _files(read, TLS, clusters, _tls)
    cluster_credentials = _files(read, CREDENTIALS, clusters, _credentials)
    origins = read.words("CONSOLE_TRUSTED_ORIGINS")
    for origin in origins:
        if not re.fullmatch(r"https?://[^/\s]+", origin):
            read.complain("CONSOLE_TRUSTED_ORIGINS", origin, "scheme://host[:port]")
    proxies = read.networks("CONSOLE_TRUSTED_PROXIES")
    alarms, identity = read_alarm_settings(read), read_identity_settings(read)
    time_zone = read.text("CONSOLE_TIME_ZONE") or "UTC"
    if time_zone not in available_timezones():
        read.complain("CONSOLE_TIME_ZONE", time_zone, "a name such as UTC or Asia/Shanghai")
    home = Path(read.text("GANTRY_HOME") or HOME_DEFAULT).expanduser().resolve()
    redis_url = read.url("REDIS_URL", REDIS_SCHEMES)
    database_url = read.url("DATABASE_URL", DATABASE_SCHEMES)
    history = read_history_settings(read, database_url)
    second_factor = _second_factor(read)
    https, debug = read.flag("CONSOLE_HTTPS"), read.flag("CONSOLE_DEBUG")
    numbers = {
        name.lower(): read.number(f"CONSOLE_{name}", *bounds) for name, bounds in NUMBERS.items()
    }
    thresholds = {
        name.lower(): read.number(f"CONSOLE_FINDINGS_{name}", *bounds)
        for name, bounds in FINDING_NUMBERS.items()
    }
    audit_days = read.number("CONSOLE_AUDIT_DAYS", 1, AUDIT_DAYS_MAX, AUDIT_DAYS_DEFAULT)
    metrics_token = _token(read, "CONSOLE_METRICS_TOKEN_FILE")
    prefix = read.text("CONSOLE_PREFIX").rstrip("/")
    if prefix and not PREFIX.fullmatch(prefix):
        read.complain("CONSOLE_PREFIX", prefix, "a path such as /mq/")
    if read.problems:
        raise EnvironmentProblem("\n".join(read.problems))
    return Environment(
        home=home,
        clusters=clusters,
        clusters_from=clusters_from,
        cluster_marks=cluster_marks,
        read_only_clusters=read_only_clusters,
        cluster_tls=cluster_tls,
        cluster_credentials=cluster_credentials,
        redis_url=redis_url,
        database_url=database_url,
        secret_key=read.text("SECRET_KEY") or _kept_secret(home),
        spark_master=read.text("SPARK_MASTER"),
        demo_control=read.text("GANTRY_DEMO_CONTROL"),
        documentation=read.text("CONSOLE_DOCUMENTATION"),
        **numbers,
        history=history,
        alarms=alarms,
        identity=identity,
        finding_thresholds=thresholds,
        audit_days=audit_days,
        time_zone=time_zone,
        prefix=prefix,
        allowed_hosts=(*own_hosts(), *read.words("CONSOLE_ALLOWED_HOSTS")),
        metrics_token=metrics_token,
        trusted_origins=origins,
        trusted_proxies=proxies,
        https=https,
        second_factor=second_factor,
        debug=debug,
    )


def is_network(text: str) -> bool:
    """Return True for an IP address or a network address with prefix length."""
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def own_hosts() -> tuple[str, ...]:
    """Return host names and addresses in URLs of this machine, as in a Host header.

    Other names are refused: a web page that resolves its own name to the console's address (DNS
    rebinding) would share an origin with the console.
    """
    name = socket.gethostname().lower()
    addresses = {
        each.address.lower()
        for interface in psutil.net_if_addrs().values()
        for each in interface
        if each.family in {socket.AF_INET, socket.AF_INET6} and "%" not in each.address
    }
    hosts = {"localhost", "127.0.0.1", "::1", name, name.partition(".")[0], *addresses}
    return tuple(sorted(f"[{host}]" if ":" in host else host for host in hosts if host))


def _second_factor(read: _Reader) -> str:
    word = read.text("CONSOLE_SECOND_FACTOR").lower() or "optional"
    if word not in SECOND_FACTOR_WORDS:
        read.complain("CONSOLE_SECOND_FACTOR", word, f"one of {', '.join(SECOND_FACTOR_WORDS)}")
    return word


def _token(read: _Reader, variable: str) -> bytes:
    file = read.text(variable)
    try:
        return read_token(file)
    except UnusableToken as problem:
        read.complain(variable, file, str(problem))
        return b""


def _marks(read: _Reader, clusters: Mapping[str, str]) -> dict[str, ClusterMark]:
    """Parse `name=colour[+production];…` into `{name: mark}`."""
    marks: dict[str, ClusterMark] = {}
    for entry in filter(None, (part.strip() for part in read.text(MARKS).split(";"))):
        name, _, words = entry.partition("=")
        color, *rest = words.strip().split("+")
        if name.strip() not in clusters or color not in MARK_COLORS or rest not in MARK_ENDS:
            expected = f"cluster=colour[+production]; colours are {', '.join(MARK_COLORS)}"
            read.complain(MARKS, entry, expected)
        marks[name.strip()] = ClusterMark(color, bool(rest))
    return marks


def _files(
    read: _Reader, variable: str, clusters: Mapping[str, str], load: Callable[[str], T]
) -> dict[str, T]:
    """Parse `name=file;…` into `{name: load(file)}`; `load` raises ClientError."""
    loaded: dict[str, T] = {}
    for entry in filter(None, (part.strip() for part in read.text(variable).split(";"))):
        name, _, file = (part.strip() for part in entry.partition("="))
        if name not in clusters or not file:
            read.complain(variable, entry, "cluster=file")
            continue
        try:
            loaded[name] = load(file)
        except ClientError as problem:
            read.complain(variable, entry, str(problem))
    return loaded


def _tls(file: str) -> tuple[str, ClientTls]:
    found = ClientTls.from_file(file)
    found.context()
    return file, found


def _credentials(file: str) -> Credentials:
    found = Credentials.from_file(Path(file))
    if found is None:
        raise ClientError(f"a file with accessKey and secretKey; {file} has neither")
    return found


def _clusters(read: _Reader) -> tuple[dict[str, str], str]:
    """Return `{name: "host:port;host:port"}` and the name of the source variable."""
    listed = read.text("CONSOLE_CLUSTERS")
    if not listed:
        addresses = read.text("NAMESRV_ADDR") or NAMESRV_DEFAULT
        return {"local": _addresses(read, "NAMESRV_ADDR", addresses)}, "NAMESRV_ADDR"
    clusters: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in listed.split(";"))):
        name, equals, addresses = (part.strip() for part in entry.partition("="))
        if not equals or not CLUSTER_NAME.fullmatch(name):
            read.complain("CONSOLE_CLUSTERS", entry, "name=host:port[,host:port]")
        elif name in clusters:
            read.complain("CONSOLE_CLUSTERS", entry, f"each name once, {name!r} came before")
        else:
            clusters[name] = _addresses(read, "CONSOLE_CLUSTERS", addresses)
    return clusters, "CONSOLE_CLUSTERS"


def _addresses(read: _Reader, variable: str, text: str) -> str:
    """Validate name server addresses and join the addresses with `;` like RocketMQ."""
    addresses = [part for part in re.split(r"[,;\s]+", text) if part]
    for address in addresses:
        match = ADDRESS.fullmatch(address)
        if match is None or not 0 < int(match["port"]) <= PORT_MAX:
            read.complain(variable, address, "host:port")
    if not addresses:
        read.complain(variable, text, "at least one host:port")
    return ";".join(addresses)


def _kept_secret(home: Path) -> str:
    """Return the secret key of the home folder; create the key on first use.

    Console, worker and scheduler may start together: a complete file is linked into place, the
    first link succeeds, and the other processes read the file.
    """
    path = home / "secret_key"
    try:
        if not path.exists():
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with NamedTemporaryFile("w", dir=home, prefix=".secret_key.") as draft:
                draft.write(secrets.token_urlsafe(64))
                draft.flush()
                with suppress(FileExistsError):
                    os.link(draft.name, path)
        return path.read_text(encoding="ascii").strip()
    except OSError as problem:
        raise EnvironmentProblem(
            f"{path} cannot be used: {problem.strerror}. Set GANTRY_HOME to a folder that can be "
            "written, or SECRET_KEY."
        ) from problem
