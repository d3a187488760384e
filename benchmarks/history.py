"""Size and work of the history: 5,000 topics and groups, written in compressed time.

    python -m benchmarks.history
    python -m benchmarks.history --names 500 --active 1.0

The program writes one day and the hour after it (`history_load.py`) through the writer and the
upkeep of the sampler, without a cluster, and prints the size of 30 days: the rows of the written
day 30 times, and the samples of the last day. CPU time is of this program, for each sample; the
questions to the cluster come on top (`make bench-console` has them).
"""

import tempfile
import time
from pathlib import Path

import click

from benchmarks.history_load import DAYS, Load
from console.services.history.files import FilePlace
from console.services.history.metrics import DAY_MS, HOUR_MS, INTERVAL_MS
from console.services.history.upkeep import Upkeep
from console.services.history.writing import Writer

BEGIN_MS = 1_760_054_400_000 // DAY_MS * DAY_MS
MEBIBYTE = 1 << 20


@click.command(help=__doc__)
@click.option("--names", default=5_000, help="Topics, and as many groups.")
@click.option("--active", default=0.2, help="Share of the names with traffic.")
@click.option("--hours", default=25, help="Hours written; below 25, the day is not complete.")
def main(names: int, active: float, hours: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = FilePlace(Path(folder) / "history.sqlite3").writer()
        writer = Writer(store)
        upkeep = Upkeep(store, writer.reload, keep_days=DAYS, bytes_max=1 << 40)
        load = Load(names, active)
        cpu_s = 0.0
        times = range(BEGIN_MS, BEGIN_MS + hours * HOUR_MS, INTERVAL_MS)
        for at_ms in times:
            samples = load.samples(at_ms)
            before_s = time.process_time()
            writer.append(at_ms, samples, {})
            upkeep.run(at_ms, lambda: True)
            cpu_s += time.process_time() - before_s
        sizes = {
            table: store.db.execute(
                f"SELECT coalesce(sum(length(data)), 0) FROM {table}"
            ).fetchone()[0]
            for table in ("frame", "hour", "day")
        }
        file_bytes = store.size_bytes()
        overhead = file_bytes / max(1, sum(sizes.values()))
        store.close()
    total = (sizes["frame"] + sizes["hour"] + DAYS * sizes["day"]) * overhead
    for table, size in sizes.items():
        click.echo(f"{table}: {size / MEBIBYTE:.1f} MiB")
    click.echo(f"file: {file_bytes / MEBIBYTE:.1f} MiB, {overhead:.2f} times its arrays")
    click.echo(f"{DAYS} days of {names} topics and groups: {total / MEBIBYTE:.0f} MiB")
    sample_s = cpu_s / len(times)
    share = sample_s / (INTERVAL_MS / 1000)
    click.echo(f"CPU of a sample: {sample_s * 1000:.1f} ms, {share:.2%} of a core")


if __name__ == "__main__":
    main()
