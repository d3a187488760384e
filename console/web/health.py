"""Monitoring endpoints without sign-in: /livez, /readyz, /metrics and /varz.

/metrics and /varz are for programs on this machine, or for holders of CONSOLE_METRICS_TOKEN_FILE's
token.

Like Kubernetes' API server, `?verbose` lists every check and `?exclude=<check>` skips a check. A
probe excludes the check of a cluster to keep the console reachable while the cluster is down.
A full disk is a warning, with status 200: pages work on, and a restart would not help.
"""

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial, wraps

import django
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from console.frame.access import Need, needs
from console.frame.own_disks import (
    SIDE_FILES_BYTES,
    is_disk_full,
    own_disks,
    why_database_fails,
)
from console.gateway import Cluster, GatewayError, gateway, now_ms
from console.gateway.brokers.listing import cluster_map
from console.metrics import REGISTRY
from console.project_files import COMMAND
from console.web.dependencies import redis_problem
from core_broker.monitoring.access import MetricsAccess

STARTED_MS = now_ms()

Check = Callable[[], str | None]


@needs(Need.OPEN)
def livez(request: HttpRequest) -> HttpResponse:
    """Answer 200 while the process serves requests."""
    return HttpResponse("ok\n", content_type="text/plain")


@needs(Need.OPEN)
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when every check passes, else 503 with the failed checks; name full disks."""
    excluded = set(request.GET.getlist("exclude"))
    results = [(name, check()) for name, check in checks() if name not in excluded]
    failed = [name for name, problem in results if problem]
    warnings = [f"[!]{name} {text}" for name, text in disk_warnings() if name not in excluded]
    lines = [
        f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in results
    ]
    if not failed and "verbose" not in request.GET:
        lines = ["ok"]
    status = 503 if failed else 200
    return HttpResponse(
        "\n".join(lines + warnings) + "\n", content_type="text/plain", status=status
    )


def checks() -> Iterator[tuple[str, Check]]:
    """Yield name and check of each dependency; a check returns the problem, or None."""
    yield "database", database_problem
    if settings.REDIS_URL:
        yield "redis", redis_problem
    for cluster in gateway.clusters():
        yield f"cluster-{cluster.name}", partial(cluster_problem, cluster)


def database_problem() -> str | None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_session WHERE 1 = 0")
    except DatabaseError as problem:
        if is_disk_full(problem) and (full := why_database_fails()):
            return full
        return f"{problem}; `{COMMAND} migrate` creates its tables, DATABASE_URL names another"
    return None


def disk_warnings() -> Iterator[tuple[str, str]]:
    """Yield name and state of each full disk of the console; `writes`: a write was refused."""
    own = own_disks()
    if own.refused_ms is not None:
        ago_s = (now_ms() - own.refused_ms) // 1_000
        yield (
            "writes",
            f"a full disk refused a write {ago_s} s ago: {' '.join(own.refused.split())}",
        )
    for disk in own.disks:
        if disk.is_full:
            does = (
                "cannot be written"
                if disk.free_bytes < SIDE_FILES_BYTES
                else "may soon not be written"
            )
            free = f"{disk.free_bytes // 1024} KiB of {disk.total_bytes // (1024 * 1024)} MiB"
            yield disk.name, f"{does}: the disk of {disk.path} has {free} free"


def cluster_problem(cluster: Cluster) -> str | None:
    try:
        answer = cluster.ask(cluster_map)
    except GatewayError as problem:
        return str(problem.detail)
    if answer.failures:  # the value then has the remembered brokers
        return answer.failures[0].reason
    return (
        None
        if answer.value.broker_addr_table
        else f"no broker is registered at {cluster.namesrv_addr}"
    )


def for_readers(
    view: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Decorator: applies the rule of `MetricsAccess`; others get 401 with the reason."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        access = MetricsAccess("CONSOLE_METRICS_TOKEN_FILE", settings.METRICS_TOKEN)
        headers = {name.lower(): value for name, value in request.headers.items()}
        # ALLOWED_HOSTS has checked the Host header, and has names of this machine.
        headers.pop("host", None)
        peer, own = request.META.get("REMOTE_ADDR", ""), request.META.get("SERVER_NAME", "")
        if why := access.why_denied(peer, own, headers):
            challenge = {"WWW-Authenticate": 'Bearer realm="metrics"'}
            return HttpResponse(
                f"{why}\n", content_type="text/plain", status=401, headers=challenge
            )
        return view(request)

    return guarded


@needs(Need.OPEN)
@for_readers
def metrics_page(request: HttpRequest) -> HttpResponse:
    return HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE_LATEST)


@needs(Need.OPEN)
@for_readers
def varz(request: HttpRequest) -> HttpResponse:
    """Return process and configuration data, without secrets."""
    database = settings.DATABASES["default"]
    return JsonResponse(
        {
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "django": django.get_version(),
            "started_ms": STARTED_MS,
            "now_ms": now_ms(),
            "home": str(settings.GANTRY_HOME),
            "clusters": dict(settings.CONSOLE_CLUSTERS),
            "clusters_from": settings.CONSOLE_CLUSTERS_FROM,
            "database": database["ENGINE"].rpartition(".")[2],
            "redis": bool(settings.REDIS_URL),
            "time_zone": settings.TIME_ZONE,
            "https": settings.SESSION_COOKIE_SECURE,
        }
    )
