"""`make bench-peers`: Gantry beside its peers, alternating on one machine in one run.

Peers are Apache RocketMQ's brokers as Maven packages and rocketmq-rust as crates
(peer_brokers.py). Each row runs on the brokers in turn, several rounds; the comparison uses medians
without the first round (alternating.py). All brokers but the measured one are stopped (SIGSTOP)
meanwhile. JVMs get a warm-up, and each measurement starts without free memory (ballast.py). Writes
bench-peers.json, prints the ratios, and renders docs/performance.md.

    starts              name server and broker on an empty store
    send-64x1 …         closed loops: 64 x 1, 1 x 64, batches of 32, pulls of 32; 1 KiB
    offered             64 x 1 at half of the reference's peak; open loop
    mixed               the same rate beside consumers that keep up, for minutes
    java-client         64 threads with a shared producer, then a consumer of the backlog
    memory              after ten million messages; name server and broker, without page cache
    sync-64x1           SYNC_FLUSH, with separate brokers
    replication         a slave beside each master: SYNC_MASTER, ASYNC_MASTER
    signed, tls         access control and TLS, with separate brokers
    kills               kill -9 under load: acknowledged messages that are lost
    bounds              Gantry beside servers that do less than any broker (bounds.py)

With --only or --peers, only the measured ratios are printed, and docs/performance.md stays, except
with `--only bounds --update`. A peer that cannot be installed is skipped, and the reason is
printed.
"""

import json
import shutil
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from benchmarks import bounds, page, peer_rows
from benchmarks.alternating import Bench, Options, say
from benchmarks.ballast import PAGE_BYTES, Ballast
from benchmarks.machine import facts
from benchmarks.peer_brokers import OURS, PEERS, Peer
from tests.compat.installing import CannotInstall

ROOT: Final = Path(__file__).resolve().parents[1]
FREE_BYTES_MIN: Final = 40 * 1024**3
MEMORY_MESSAGES: Final = 10_000_000
BOUNDS: Final = "bounds"

Figures = dict[str, Any]


def peer_names(context: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
    """The names of --peers, Gantry first."""
    names = [name for name in text.split(",") if name]
    if unknown := [name for name in names if name not in PEERS]:
        raise click.BadParameter(f"{unknown[0]} is none of {', '.join(PEERS)}")
    return tuple(name for name in PEERS if name in names or not names)


@click.command(context_settings={"show_default": True})
@click.option("--seconds", type=float, default=4, help="Duration of a run.")
@click.option("--rounds", type=int, default=3, help="Rounds of each scenario.")
@click.option("--warm-up", "warm_up_seconds", type=float, default=60, help="Seconds.")
@click.option("--client-seconds", type=int, default=40, help="Duration of a Java client's run.")
@click.option("--mixed-seconds", type=float, default=180, help="Duration of the mixed load.")
@click.option(
    "--messages", type=int, default=MEMORY_MESSAGES, help="Messages before memory is measured."
)
@click.option("--kills", type=int, default=5, help="Kills of each broker.")
@click.option(
    "--fill-memory/--no-fill-memory", default=True, help="Fill free memory before each run."
)
@click.option(
    "--only", type=click.Choice(peer_rows.ROWS), multiple=True, help="Run this row; repeatable."
)
@click.option(
    "--peers",
    "names",
    default="",
    callback=peer_names,
    help=f"Names separated by commas, of: {', '.join(PEERS)}. Default: all.",
)
@click.option(
    "--update",
    is_flag=True,
    help="With --only bounds: put the bounds into the results of --json, and render the page.",
)
@click.option("--home", type=click.Path(path_type=Path), default=ROOT / "var" / "bench")
@click.option(
    "--json", "output", type=click.Path(path_type=Path), default=ROOT / "bench-peers.json"
)
@click.option(
    "--page",
    "page_path",
    type=click.Path(path_type=Path),
    default=ROOT / "docs" / "performance.md",
)
def main(
    home: Path,
    output: Path,
    page_path: Path,
    only: tuple[str, ...],
    names: tuple[str, ...],
    update: bool,
    **given: Any,
) -> None:
    """Measure Gantry beside its peers; writes the results and docs/performance.md."""
    options = Options(**given)
    home.mkdir(parents=True, exist_ok=True)
    if update and only != (BOUNDS,):
        # Ratios of brokers need one run, so no other row can be measured anew.
        raise click.BadParameter("--update needs --only bounds")
    earlier = json.loads(output.read_text()) if update else {}
    is_whole = not only and set(names) == set(PEERS)
    if not only and shutil.disk_usage(home).free < FREE_BYTES_MIN:
        sys.exit(f"Less than 40 GiB are free below {home}; set --home to a folder with more space.")
    peers, skipped = installed(names)
    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        figures: Figures = {
            "machine": facts(folder),
            "options": asdict(options),
            "peers": {name: peer.title for name, peer in peers.items()},
            "tuning": {name: peer.tuning for name, peer in peers.items()},
            "skipped": skipped,
        }
        if update and earlier["machine"]["cpu"] != figures["machine"]["cpu"]:
            sys.exit(f"{output} has the results of another CPU: {earlier['machine']['cpu']}")
        with closing(Ballast(folder)) as ballast:
            if options.fill_memory:
                figures["free_page_us"] = fill(ballast)
            bench = Bench(options, ballast)
            wanted = set(only or peer_rows.ROWS)
            figures |= peer_rows.measure_rows(folder, wanted, peers, bench)
            if BOUNDS in wanted and OURS in peers:
                say("bounds: servers that do less than a broker")
                bench.prepare()
                rate = (earlier or figures).get("offered_rate", 0)
                figures[BOUNDS] = {
                    **{name: figures["machine"][name] for name in ("measured_at", "commit")},
                    "loads": bounds.compare(folder, names=bounds.COMPARED, offered_rate=rate),
                }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if update:
        figures = earlier | {BOUNDS: figures[BOUNDS]}
    output.write_text(json.dumps(figures, indent=2) + "\n")
    written = str(output)
    if is_whole or update:
        page_path.write_text(page.render(figures, page_path.read_text()))
        written += f" and {page_path}"
    print(page.ratios(figures))
    print(f"\nwritten to {written}")


def installed(names: tuple[str, ...]) -> tuple[dict[str, Peer], dict[str, str]]:
    """The peers that can be installed, and the reasons of the others."""
    peers, skipped = {}, {}
    for name in names:
        try:
            PEERS[name].install()
            peers[name] = PEERS[name]
        except CannotInstall as reason:
            skipped[name] = str(reason)
            say(f"{PEERS[name].title} is skipped: {reason}")
    return peers, skipped


def fill(ballast: Ballast) -> float:
    """Fill all free memory; returns the cost per page, µs."""
    say("filling the memory")
    began = time.perf_counter()
    pages = ballast.fill() / PAGE_BYTES
    return round((time.perf_counter() - began) * 1e6 / pages, 1)


if __name__ == "__main__":
    main()
