"""`make bench-lake`: how fast the analytics pages and resources answer over a large lake.

DuckDB makes a lake of a month of traffic with known shape (40 topics, 60 consumer groups, every
table of `trace.tables`), then every page and resource is asked over every range by Django's test
client, each time with another scope so that nothing can be kept. It prints p50 and p95 of each.
The lake stays in ./var/bench-lake and is used again; `--fresh` makes it anew.
"""

import argparse
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Final

from benchmarks.lake_sql import DAY_MS, fill_day
from trace.lake import DATASETS, HOUR_MS, Lake, Snapshot

ROOT: Final = Path(__file__).resolve().parents[1]
DAYS: Final = 30
RANGES: Final = ("1h", "24h", "7d", "30d")
SCOPES: Final = ("", "topic=topic-1", "group=group-3-0", "kind=order")
CLUSTER: Final = "bench"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lake", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000_000, help="(%(default)s)")
    parser.add_argument("--home", type=Path, default=ROOT / "var" / "bench-lake")
    parser.add_argument("--fresh", action="store_true", help="make the lake anew")
    parser.add_argument("--rounds", type=int, default=5, help="per question (%(default)s)")
    parser.add_argument("--json", type=Path, default=ROOT / "bench-lake.json")
    options = parser.parse_args()
    lake = Lake(options.home / "lake" / CLUSTER)
    end_ms = int(time.time() * 1000) // HOUR_MS * HOUR_MS
    if options.fresh:
        shutil.rmtree(lake.root, ignore_errors=True)
    if not lake.snapshot().run:
        begun = time.perf_counter()
        make_lake(lake, options.events, end_ms)
        print(f"made a lake of {options.events:,} events in {time.perf_counter() - begun:.0f} s")
    figures = measure(options.home, lake.snapshot().committed_ms, options.rounds)
    for name, figure in figures.items():
        print(f"{name:44} p50 {figure['p50_ms']:7.0f} ms   p95 {figure['p95_ms']:7.0f} ms")
    options.json.write_text(json.dumps(figures, indent=2) + "\n")


def make_lake(lake: Lake, events: int, end_ms: int, days: int = DAYS) -> None:
    """A lake of about so many events in the days before `end_ms`, committed as one run."""
    lake.root.mkdir(parents=True, exist_ok=True)
    begin_ms = end_ms - days * DAY_MS
    counted = 0
    for day in range(days):
        counted += fill_day(lake.root, begin_ms + day * DAY_MS, events // days, seed=day)
    parts: dict[str, dict[int, list[int]]] = {
        dataset: {hour: [run] for hour, run, _path in lake.on_disk(dataset)} for dataset in DATASETS
    }
    lake.commit(
        Snapshot(
            topic="RMQ_SYS_TRACE_TOPIC",
            run=1,
            committed_ms=end_ms,
            watermark_ms=end_ms,
            parts=parts,
            messages=counted // 4,
            records=counted,
        )
    )


def questions(end_ms: int) -> Iterator[tuple[str, str]]:
    """Name and address of all that is asked."""
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
    """Ask everything `rounds` times; milliseconds by question."""
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

    from console.services.analytics.summaries import summarise

    call_command("migrate", verbosity=0)
    summarise(CLUSTER, lambda: None)  # as every job does in the end
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
            if number:  # the first round warms the files up
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
