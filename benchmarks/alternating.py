"""Rounds of one scenario on several brokers in turn, with the other brokers stopped meanwhile."""

import sys
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from benchmarks.ballast import Ballast
from benchmarks.load import MESSAGES_MAX, SCENARIOS, Scenario
from benchmarks.measuring import measure
from benchmarks.processes import Cluster, alone
from benchmarks.requests import batch_template, pull_template, send_template

Figures = dict[str, Any]

SMALL_BYTES: Final = 128
#: Topic with the same backlog on each broker, for pulls.
PULL_TOPIC: Final = "BenchPull"
BACKLOG: Final = Scenario(16, 1, lambda number: batch_template(number, 32, topic=PULL_TOPIC))
BACKLOG_MESSAGES: Final = 400_000
BACKLOG_SECONDS_MAX: Final = 120
PULLS: Final = Scenario(16, 1, lambda number: pull_template(number, PULL_TOPIC))
#: Scenarios and shares of a warm-up.
WARM_UP: Final = (
    (Scenario(64, 1, lambda number: send_template(number, body_bytes=SMALL_BYTES)), 0.4),
    (Scenario(1, 64, lambda number: send_template(number, body_bytes=SMALL_BYTES)), 0.25),
    (SCENARIOS["batch-32"], 0.1),
    (SCENARIOS["pull-32"], 0.25),
)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a measurement."""

    #: Duration of a run.
    seconds: float
    #: Rounds of each scenario.
    rounds: int
    warm_up_seconds: float
    #: Duration of a run of the Java client.
    client_seconds: int
    #: Duration of the mixed load.
    mixed_seconds: float
    #: Messages stored before the memory is measured.
    messages: int
    #: Kills of each broker.
    kills: int
    #: Each measurement starts without free memory (ballast.py).
    fill_memory: bool


@dataclass(frozen=True, slots=True)
class Bench:
    """The options of a run and its ballast."""

    options: Options
    ballast: Ballast

    def alternate(
        self,
        name: str,
        scenario: Scenario,
        clusters: dict[str, Cluster],
        everybody: list[Cluster],
        *,
        messages_max: int = MESSAGES_MAX,
        rate: int = 0,
    ) -> Figures:
        """Measure the brokers in turn, several rounds; returns medians without the first round.

        The first round pays one-time costs of a scenario: JIT compilation, memory mapping. A broker
        that refuses the load has the reason in place of its metrics, and no further rounds.
        """
        say(f"{name}{f' at {rate:,} a second' if rate else ''}: {', '.join(clusters)}")
        runs: dict[str, list[Figures]] = {who: [] for who in clusters}
        failed: dict[str, str] = {}
        for _ in range(1 + self.options.rounds):
            for who, cluster in clusters.items():
                if who in failed:
                    continue
                with alone(cluster, everybody):
                    self.prepare()
                    try:
                        figures = measure(
                            cluster,
                            scenario,
                            seconds=self.options.seconds,
                            messages_max=messages_max,
                            rate=rate,
                        )
                    except SystemExit as reason:
                        failed[who] = note_failure(who, name, reason)
                        continue
                runs[who].append(figures)
        return {
            who: {"failed": failed[who]} if who in failed else _medians(each)
            for who, each in runs.items()
        }

    def prepare(self) -> None:
        """Fill free memory, unless switched off."""
        if self.options.fill_memory:
            self.ballast.fill()

    def warm_up(self, name: str, cluster: Cluster, everybody: list[Cluster]) -> None:
        """Let a JVM compile the code of the scenarios."""
        seconds = self.options.warm_up_seconds
        if seconds:
            say(f"warming up {name} for {seconds:.0f} s")
            with alone(cluster, everybody):
                for scenario, share in WARM_UP:
                    try:
                        measure(cluster, scenario, seconds=max(1, seconds * share))
                    except SystemExit as reason:
                        note_failure(name, "the warm-up", reason)


def store_backlog(who: str, cluster: Cluster) -> None:
    """Store the messages of the pulls; a broker that refuses batches has nothing to pull."""
    say(f"a backlog of {BACKLOG_MESSAGES:,} messages for {who}")
    try:
        measure(cluster, BACKLOG, seconds=BACKLOG_SECONDS_MAX, messages_max=BACKLOG_MESSAGES)
    except SystemExit as reason:
        note_failure(who, "backlog", reason)


def note_failure(who: str, what: str, reason: BaseException) -> str:
    """Report a failed run; returns the last line of the reason."""
    line = (str(reason).strip() or type(reason).__name__).splitlines()[-1][:300]
    say(f"{who} fails at {what}: {line}")
    return line


def _medians(runs: list[Figures]) -> Figures:
    first, *counted = runs
    return {
        "rate": int(median(each["rate"] for each in counted)),
        "answered_rate": int(median(each["answered_rate"] for each in counted)),
        "cpu_us_per_message": round(
            median(each["broker_cpu_us_per_message"] for each in counted), 2
        ),
        **{
            f"{name}_us": int(median(each["latency_us"][name] for each in counted))
            for name in ("p50", "p99", "p99.9")
        },
        "generator_share": round(
            100 * median(each["generator_cpu_seconds"] / each["seconds"] for each in counted)
        ),
        "rates": [int(each["rate"]) for each in counted],
        "first_rate": int(first["rate"]),
    }


def say(line: str) -> None:
    """Report progress on stderr."""
    print(line, file=sys.stderr, flush=True)
