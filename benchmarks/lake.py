"""`make bench-lake`: response times of the analytics pages and resources over a large lake.

DuckDB creates a lake with a month of synthetic traffic (40 topics, 60 consumer groups, every table
of `trace.tables`). Django's test client then requests every page and resource for every range, with
different scopes, so that no cached response fits. Prints p50 and p95 of each. The lake stays in
./var/bench-lake for the next run; `--fresh` creates a new lake.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Final

import click

from benchmarks.lake_sql import DAY_MS, fill_day, subscriptions
from spark_jobs.jobs.subscriptions import write_subscriptions
from trace.lake import DATASETS, HOUR_MS, Lake, Snapshot

ROOT: Final = Path(__file__).resolve().parents[1]
DAYS: Final = 30
RANGES: Final = ("1h", "24h", "7d", "30d")
SCOPES: Final = ("", "topic=topic-1", "group=group-3-0", "kind=order")
CLUSTER: Final = "bench"


@click.command(context_settings={"show_default": True})
@click.option("--events", type=int, default=100_000_000)
@click.option("--home", type=click.Path(path_type=Path), default=ROOT / "var" / "bench-lake")
@click.option("--fresh", is_flag=True, help="Create a new lake.")
@click.option("--rounds", type=int, default=5, help="Rounds of each request.")
@click.option("--json", "output", type=click.Path(path_type=Path), default=ROOT / "bench-lake.json")
def main(events: int, home: Path, fresh: bool, rounds: int, output: Path) -> None:
    """Measure the analytics pages over a large lake."""
    lake = Lake(home / "lake" / CLUSTER)
    end_ms = int(time.time() * 1000) // HOUR_MS * HOUR_MS
    if fresh:
        shutil.rmtree(lake.root, ignore_errors=True)
    if not lake.snapshot().run:
        begin_s = time.perf_counter()
        make_lake(lake, events, end_ms)
        print(f"made a lake of {events:,} events in {time.perf_counter() - begin_s:.0f} s")
    figures = measure(home, lake.snapshot().committed_ms, rounds)
    for name, figure in figures.items():
        print(f"{name:44} p50 {figure['p50_ms']:7.0f} ms   p95 {figure['p95_ms']:7.0f} ms")
    output.write_text(json.dumps(figures, indent=2) + "\n")


def make_lake(lake: Lake, events: int, end_ms: int, days: int = DAYS) -> None:
    """Create a lake of about `events` events in the days before `end_ms`, committed as one run."""
    lake.root.mkdir(parents=True, exist_ok=True)
    begin_ms = end_ms - days * DAY_MS
    counted = 0
    for day in range(days):
        counted += fill_day(lake.root, begin_ms + day * DAY_MS, events // days, seed=day)
    parts: dict[str, dict[int, list[int]]] = {
        dataset: {hour: [run] for hour, run, _path in lake.on_disk(dataset)} for dataset in DATASETS
    }
    write_subscriptions(lake, 1, list(subscriptions(end_ms)))
    lake.commit(
        Snapshot(
            topic="RMQ_SYS_TRACE_TOPIC",
            run=1,
            committed_ms=end_ms,
            subscriptions_run=1,
            subscriptions_ms=end_ms,
            watermark_ms=end_ms,
            parts=parts,
            messages=counted // 4,
            records=counted,
        )
    )


def questions(end_ms: int) -> Iterator[tuple[str, str]]:
    """Name and URL of every request."""
    page = f"/clusters/{CLUSTER}/analytics"
    api = f"/api/v1/clusters/{CLUSTER}/analytics"
    places = {
        "page overview": f"{page}/",
        "page graph": f"{page}/graph/",
        "page slow": f"{page}/slow/",
        **{
            f"api {name}": f"{api}/{name}"
            for name in ("series", "topics", "groups", "kinds", "latency", "heatmap")
        },
        **{f"api {name}": f"{api}/{name}" for name in ("funnel", "edges", "slow")},
        "api totals": api,
    }
    lengths = {"1h": HOUR_MS, "24h": DAY_MS, "7d": 7 * DAY_MS, "30d": 30 * DAY_MS}
    for name, path in places.items():
        for span in RANGES:
            for scope in SCOPES:
                query = f"begin_ms={end_ms - lengths[span]}&end_ms={end_ms}&{scope}"
                yield f"{name} {span}", f"{path}?{query}"


def measure(home: Path, end_ms: int, rounds: int) -> dict[str, dict[str, float]]:
    """Send every request `rounds` times; returns response times in ms by name."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "GANTRY_HOME": str(home),
        "CONSOLE_CLUSTERS": f"{CLUSTER}=127.0.0.1:9",
        "REDIS_URL": "",
        "DATABASE_URL": "",
    }
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    from console.services.analytics.day_rollups import write_day_rollups

    call_command("migrate", verbosity=0)
    write_day_rollups(CLUSTER, lambda: None)  # as at the end of every job
    user, _made = User.objects.get_or_create(username="bench")
    client = Client(headers={"host": "localhost"})
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    took: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name, path in questions(end_ms):
            begun = time.perf_counter()
            answer = client.get(path)
            seconds = time.perf_counter() - begun
            assert answer.status_code == 200, (path, answer.content[:500])
            if number:  # the first round is a warm-up
                took.setdefault(name, []).append(seconds * 1000)
    return {
        name: {
            "p50_ms": round(quantiles(times, n=20)[9], 1),
            "p95_ms": round(quantiles(times, n=20)[18], 1),
        }
        for name, times in took.items()
    }


if __name__ == "__main__":
    main()
