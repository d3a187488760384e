"""The files of a bundle: name and content, each from one source."""

import importlib.metadata
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Final

import msgspec
from django.conf import settings
from django.utils.translation import override
from prometheus_client import generate_latest

from console.audit.masking import masked
from console.gateway import Cluster, now_ms
from console.gateway.brokers.secrets import shown
from console.gateway.health.snapshot import health_snapshot
from console.metrics import REGISTRY
from console.services.alarms.api import alarm_bodies
from console.services.alarms.episodes import open_rows
from console.services.alarms.models import Delivery, Receiver
from console.services.alarms.rules import rules_of
from console.services.alarms.serializers import (
    AlarmRuleSerializer,
    DeliverySerializer,
    ReceiverSerializer,
)
from console.services.findings.api import FindingSerializer, RuleResultSerializer
from console.services.findings.reports import current_report
from console.services.history.blocks import reduced
from console.services.history.latest import read_window
from console.services.history.metrics import METRICS
from console.services.history.places import place_of
from console.services.jobs.models import Job

#: Names of the settings in a bundle; values with secrets are not among them.
SETTINGS: Final = (
    *("GANTRY_HOME", "CONSOLE_CLUSTERS", "CONSOLE_CLUSTERS_FROM", "CONSOLE_CLUSTER_MARKS"),
    *("CONSOLE_CLUSTER_TLS_FILES", "SPARK_MASTER", "SPARK_IDLE_MINUTES", "SPARK_MEMORY_MB"),
    *("LAKE_DAYS", "JOB_FILE_DAYS", "JOB_FILES_MB", "JOB_MINUTES", "ANALYTICS_MEMORY_MB"),
    *("ANALYTICS_THREADS", "ANALYTICS_SECONDS", "HISTORY_DAYS", "HISTORY_MB"),
    "HISTORY_IN_DATABASE",
    *("EVALUATION_SECONDS", "ALARM_GROUP_SECONDS", "ALARM_NETWORKS", "CONSOLE_URL"),
    *("EMAIL_HOST", "EMAIL_PORT", "EMAIL_USE_TLS", "EMAIL_USE_SSL", "DEFAULT_FROM_EMAIL"),
    *("REQUESTS_MAX", "REQUESTS_WAITING_MAX", "WEBSOCKETS_MAX", "FINDING_THRESHOLDS"),
    *("AUDIT_DAYS", "TIME_ZONE", "PREFIX", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS"),
    *("TRUSTED_PROXIES", "SESSION_COOKIE_SECURE", "DEBUG"),
)
PACKAGES: Final = (
    *("django", "djangorestframework", "channels", "celery", "uvicorn", "redis", "psycopg"),
    *("numpy", "pyarrow", "duckdb", "pyspark", "msgspec", "cryptography", "uvloop"),
)
#: Size of the end of each log file, bytes, and maximum number of files.
LOG_TAIL_BYTES: Final = 256 * 1024
LOG_FILES_MAX: Final = 32
JOBS_MAX: Final = 50
DELIVERIES_MAX: Final = 100
#: Intervals of a metric whose samples are searched for the newest value.
INTERVALS: Final = 6

Part = Callable[[Cluster], Iterator[tuple[str, str]]]


def versions(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Versions of Python, the system and the packages."""
    packages: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            packages[name] = None
    found = {
        "python": sys.version,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": packages,
        "cluster": cluster.name,
        "taken_ms": now_ms(),
    }
    yield "versions.json", as_json(found)


def console_settings(cluster: Cluster) -> Iterator[tuple[str, str]]:
    found = {name: masked(getattr(settings, name, None)) for name in SETTINGS}
    found["DATABASE"] = settings.DATABASES["default"]["ENGINE"]
    found["REDIS"] = bool(settings.REDIS_URL)
    yield "settings.json", as_json(found)


def findings(cluster: Cluster) -> Iterator[tuple[str, str]]:
    report = current_report(cluster)
    context = {"cluster": cluster.name}
    body = {
        "verdict": report.verdict,
        "taken_ms": report.taken_ms,
        "counts": report.counts,
        "findings": FindingSerializer(report.findings, many=True, context=context).data,
        "checks": RuleResultSerializer(report.checks, many=True).data,
    }
    yield "findings.json", as_json(body)


def alarms(cluster: Cluster) -> Iterator[tuple[str, str]]:
    deliveries = Delivery.objects.filter(cluster=cluster.name).order_by("-pk")[:DELIVERIES_MAX]
    body = {
        "open": alarm_bodies(open_rows(cluster.name)),
        "rules": AlarmRuleSerializer(rules_of(cluster.name), many=True).data,
        "receivers": ReceiverSerializer(Receiver.objects.order_by("pk"), many=True).data,
        "deliveries": DeliverySerializer(deliveries, many=True).data,
    }
    yield "alarms.json", as_json(body)


def samples(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """The newest value of each metric of the history, by name."""
    body: dict[str, Any] = {}
    with place_of(settings.GANTRY_HOME, cluster.name).reader() as store:
        for metric in METRICS if store is not None else ():
            assert store is not None
            found = read_window(store, metric, now_ms(), 0, INTERVALS)
            if found is None:
                continue
            newest = reduced(found.values, found.values.shape[1], ("last",))["last"][:, 0]
            body[f"{metric.scope}.{metric.name}"] = {
                "unit": metric.unit,
                "newest_ms": found.newest_ms,
                "values": {
                    name: value
                    for name, slot in found.slots.items()
                    if isfinite(value := float(newest[slot]))
                },
            }
    yield "samples.json", as_json(body)


def brokers(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Runtime table and settings of each broker; values of secret keys are hidden."""
    snapshot = cluster.ask(health_snapshot).value
    rows = [
        {"name": row.ref.name, "id": row.ref.id, "addr": row.ref.addr, "state": row.state}
        for row in snapshot.brokers.value or ()
    ]
    yield "brokers.json", as_json(rows)
    for runtime in snapshot.runtimes.value or ():
        name = f"brokers/{safe(f'{runtime.ref.name}-{runtime.ref.id}')}.json"
        yield name, as_json({"runtime": shown(runtime.table)})
    if snapshot.settings.value is not None:
        by_key = {
            each.name: dict(each.values) if each.differs else each.value
            for each in snapshot.settings.value.settings
            if not each.secret
        }
        yield "broker-settings.json", as_json(by_key)


def metrics(cluster: Cluster) -> Iterator[tuple[str, str]]:
    yield "metrics.txt", generate_latest(REGISTRY).decode()


def jobs(cluster: Cluster) -> Iterator[tuple[str, str]]:
    rows = Job.objects.filter(cluster=cluster.name).order_by("-pk")[:JOBS_MAX]
    found = [
        {
            "id": row.pk,
            "kind": row.kind,
            "scope": row.scope,
            "state": row.state,
            "created_at": row.created_at.isoformat(),
            "error": row.error,
            "outputs": masked(row.outputs),
        }
        for row in rows
    ]
    yield "jobs.json", as_json(found)


def logs(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """The ends of the log files of `manage.py up`; other installations have other logs."""
    folder = settings.GANTRY_HOME / "logs"
    files = sorted(folder.glob("*.log"))[:LOG_FILES_MAX] if folder.is_dir() else []
    for path in files:
        yield f"logs/{safe(path.name)}", tail(path)


PARTS: Final[Mapping[str, Part]] = {
    "versions": versions,
    "settings": console_settings,
    "findings": findings,
    "alarms": alarms,
    "samples": samples,
    "brokers": brokers,
    "metrics": metrics,
    "jobs": jobs,
    "logs": logs,
}


def tail(path: Path) -> str:
    """Return the end of a file, from the beginning of a line."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - LOG_TAIL_BYTES))
        data = file.read(LOG_TAIL_BYTES)
    if size > LOG_TAIL_BYTES:
        data = data.partition(b"\n")[2]
    return data.decode(errors="replace")


def safe(name: str) -> str:
    """Return a name for a file of the ZIP."""
    return "".join(each if each.isalnum() or each in "._-" else "_" for each in name)[:200]


def as_json(value: Any) -> str:
    """Return readable JSON, with texts in English."""
    with override("en"):
        data = msgspec.json.encode(value, enc_hook=str)
    return msgspec.json.format(data, indent=2).decode()
