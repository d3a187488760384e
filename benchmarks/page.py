"""Render docs/performance.md and the table of ratios from the results of `make bench-peers`.

The page has one section of results per kind of CPU: a run replaces the section of its CPU and keeps
the sections of others.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import core_model
from benchmarks.peer_brokers import JAVA_5, OURS, PLAIN

Figures = dict[str, Any]

#: Heading of a section of results: the CPU, then the date.
RESULTS: Final = "## Results on "
METHOD_HEADING: Final = "## Method and limits"


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison: title, metric of a broker, target, and whether less is better."""

    title: str
    unit: str
    figure: Callable[[Figures, str], float | None]
    #: Target of the ratio to Java 5.5.0; None: no target.
    aim: float | None
    less_is_better: bool = False
    ours: str = OURS
    #: The target is a limit of Gantry's own metric.
    is_limit: bool = False

    def ratio(self, figures: Figures, peer: str) -> float | None:
        """Gantry's advantage over a peer as a factor; None when a metric is missing."""
        mine, other = self.figure(figures, self.ours), self.figure(figures, peer)
        if not mine or not other:
            return None
        return other / mine if self.less_is_better else mine / other

    @property
    def target(self) -> str:
        """The target as text."""
        if self.aim is None:
            return "—"
        return f"≤ {self.aim:g} {self.unit}" if self.is_limit else f"{self.aim:g}"


def _in(*names: str) -> Callable[[Figures, str], float | None]:
    """A field of a section; the name of a broker is before the field."""

    def find(figures: Figures, who: str) -> float | None:
        found: Any = figures
        for name in (*names[:-1], who, names[-1]):
            found = found.get(name, {})
        return found or None

    return find


def _load(name: str, field: str = "rate") -> Callable[[Figures, str], float | None]:
    return _in("scenarios", name, field)


def _memory(figures: Figures, who: str) -> float | None:
    own: float | None = figures.get("memory", {}).get(who, {}).get("both", {}).get("anon")
    return own


def _start(figures: Figures, who: str) -> float | None:
    seconds: float | None = figures.get("start_seconds", {}).get(who)
    return seconds


def _slave_cost(figures: Figures, who: str) -> float | None:
    """The share of its sends that a master loses to an asynchronous slave on its machine, %."""
    rows = figures.get("replication", {})
    alone, beside = (
        rows.get(name, {}).get(who, {}).get("rate")
        for name in ("replica-none-64x1", "replica-async-64x1")
    )
    return round(100 - 100 * beside / alone, 1) if alone and beside else None


def _slave_cpu(figures: Figures, who: str) -> float | None:
    """The CPU that an asynchronous slave adds to each send of the master, %."""
    rows = figures.get("replication", {})
    alone, beside = (
        rows.get(name, {}).get(who, {}).get("cpu_us_per_message")
        for name in ("replica-none-64x1", "replica-async-64x1")
    )
    return round(100 * beside / alone - 100, 1) if alone and beside else None


def _cpu(what: str, scenario: str) -> Row:
    cpu_us = _load(scenario, "cpu_us_per_message")
    return Row(f"broker CPU {what}", "µs", cpu_us, 5, less_is_better=True)


def _limit(
    title: str, unit: str, figure: Callable[[Figures, str], float | None], aim: float
) -> Row:
    return Row(title, unit, figure, aim, less_is_better=True, is_limit=True)


ROWS: Final = (
    Row("sends, 64 connections x 1", "msg/s", _load("send-64x1"), 3),
    Row("sends, 1 connection x 64", "msg/s", _load("send-1x64"), 5),
    Row("batches of 32", "msg/s", _load("batch-32"), 4.5),
    Row("pulls of 32 from a backlog", "msg/s", _load("pull-32"), 2.5),
    Row("SYNC_FLUSH, 64 connections x 1", "msg/s", _in("sync-64x1", "rate"), 3.5),
    Row(
        *("SYNC_MASTER with a slave, 64 x 1", "msg/s"),
        *(_in("replication", "replica-sync-64x1", "rate"), 2),
    ),
    Row(
        *("ASYNC_MASTER with a slave, 64 x 1", "msg/s"),
        *(_in("replication", "replica-async-64x1", "rate"), None),
    ),
    _limit("sends that an asynchronous slave costs", "%", _slave_cost, 15),
    _limit("CPU of the master per send it costs", "%", _slave_cpu, 15),
    Row("Java client, 64 threads, 128 B", "msg/s", _in("java-client", "sent_per_second"), 1.5),
    Row("signed sends, 64 connections x 1", "msg/s", _in("signed", "signed-64x1", "rate"), 2),
    Row("signed sends, 1 connection x 64", "msg/s", _in("signed", "signed-1x64", "rate"), 2),
    Row("TLS, 64 connections x 1", "msg/s", _in("tls", "tls-64x1", "rate"), 1.5),
    Row("TLS, 1 connection x 64", "msg/s", _in("tls", "tls-1x64", "rate"), 1.5),
    Row("TLS, signed, 64 x 1", "msg/s", _in("signed", "tls-signed-64x1", "rate"), 1.5),
    Row("TLS, signed, 1 x 64", "msg/s", _in("signed", "tls-signed-1x64", "rate"), 1.5),
    _cpu("for a send, 64 x 1", "send-64x1"),
    _cpu("for a send, 1 x 64", "send-1x64"),
    _cpu("for a message of a batch", "batch-32"),
    _cpu("for a pulled message", "pull-32"),
    Row("p99 at half of Java's peak", "µs", _in("offered", "p99_us"), 6, less_is_better=True),
    _limit("mixed load, p99.9 of sends", "µs", _in("mixed", "p99.9_us"), 15_000),
    Row(
        *("mixed load, p99.9 to the consumer", "µs", _in("mixed", "end_to_end_p99.9_us"), None),
        less_is_better=True,
    ),
    Row("without the kernel, 64 x 1", "msg/s", _load("send-64x1"), 1, ours=PLAIN),
    Row("memory after {messages:,} messages", "MB", _memory, 15, less_is_better=True),
    _limit("start to ready, empty store", "s", _start, 0.4),
)

#: Columns of the table with all metrics of each scenario and broker, in order.
LOAD_FIGURES: Final = (
    "rate",
    "answered_rate",
    "cpu_us_per_message",
    "p50_us",
    "p99_us",
    "p99.9_us",
)
#: Columns of the table of kills, in order.
KILL_FIGURES: Final = (
    "kills",
    "acknowledged",
    "lost",
    "duplicated",
    "sent_per_second",
    "restart_seconds",
)

METHOD: Final = """\
A broker shares the cores of its machine with the load generator (`benchmarks/loadgen.c`: one
thread, one epoll). Each scenario runs on the brokers in turn, several rounds after an uncounted
round, and the medians are compared. All brokers but the measured one are stopped (SIGSTOP)
meanwhile, and dirty pages of earlier runs are flushed before each run. The JVMs get a warm-up
first. Bodies have 1 KiB unless stated otherwise, every message has a unique key and a key, and
queries by key work. `waitTimeMillsInSendQueue` is raised on all brokers, so that no broker rejects
requests under load. The CPU of a message is that of all threads of the broker, and the memory is
the resident memory of name server and broker without file pages.

A run ends when consumers can read all sent messages. RocketMQ's broker responds to a send before
its dispatcher has entered the message into consume queue and index. In a closed loop of batches
the dispatcher falls behind, and the time until `dispatchBehindBytes` is 0 belongs to the run. The
rate of responses has a separate column. Gantry enters a message before its response.

Pulls read a backlog of the same size on each broker. The mixed load sends at half of Java's peak
in an open loop, while consumers on eight connections follow with long polling.

Signed sends go to brokers with access control, from an account that may send to one topic: ACL 2.0
in Gantry and RocketMQ 5, ACL 1.0 in RocketMQ 4. The load generator computes each signature.

Sends with TLS use TLS 1.3 with TLS_AES_128_GCM_SHA256 on all brokers, which have their default
settings, and the certificate of the test mode. Java uses the TLS of the JDK: the Maven packages of
the broker come without netty-tcnative. Gantry uses Python's OpenSSL.

The Java client's producer and consumer resemble RocketMQ's own benchmark programs, which are in
no package registry: one producer shared by 64 threads, one consumer with 20 threads.

A closed loop measures throughput; its latencies are those of a saturated broker. The p99 at an
offered load comes from an open loop, counted from the due time of a request.

Kills: 32 connections send, the broker is killed with SIGKILL and started again on its store, and
all messages are read. A lost message was acknowledged and cannot be read; a duplicate was read
twice. The page cache survives such a kill, a power cut is not part of the benchmark.

Before each run of the load generator the memory is filled with page cache
(`benchmarks/ballast.py`), the state of a machine after hours of broker traffic. A free page costs
some 10 µs on a virtual machine, which may request the page from its host, and a log takes a new
page for every three messages of 1 KiB: without the page cache, the benchmark would measure the
host.

A master with a slave: both on the machine of the load generator, and the slave has the whole log
before the next run. With SYNC_MASTER a send is answered when the slave has the message
(`inSyncReplicas=2`). The cost of an asynchronous slave compares Gantry with and without a slave: by
sends, where slave and load generator take their share of the cores, and by the master's CPU.

Not measured: more than two cores (Java uses them inside one broker, Gantry with more brokers, which
the model above describes), and mixed message sizes. Results of other machines
differ; ratios differ less.
"""

#: Measured bounds and the decisions that follow, newest first. A run leaves the section as it is.
BOUNDS: Final = """\
## Bounds and decisions

Process CPU (user and system) per message, brokers in alternation, on an Intel Xeon with other work
on the machine (2026-11-24): ratios hold, absolute values do not.

- **CRC of pulled records.** Every pull checks the CRC of every record. A broker without the check
  used 0.68 µs per pulled message instead of 0.77 µs (20 rounds; a second unmodified broker:
  0.77 µs) and delivered 5 % more. 12 % is the upper bound for any scheme that remembers checked
  records. No such scheme is in use: `mincore()` states that a page is in memory, but not that the
  page stayed in memory since the last check, and a page read again from a damaged disk would be
  delivered unchecked.
- **Fast path in Python.** Without the compiled kernel, a send of 64 x 1 used 22 to 34 µs with the
  fast path in Python, 49 to 51 µs with the slow path only, and 49 to 54 µs in Java 5.5.0. Java uses
  both cores, an interpreted broker one core, so its rate on a quiet Intel Xeon was 0.79 of Java's
  (AMD EPYC: 1.24). With the compiled kernel, the fast path in Python takes the sends that the
  kernel leaves, above all those with keys or tags outside of ASCII: 25 µs instead of 55 µs. The
  path stays because of these sends.
"""


def render(figures: Figures, page: str) -> str:
    """The page of the documentation: the results, and the sections of other CPUs in `page`."""
    cpu = f"{RESULTS}{figures['machine']['cpu']},"
    others = [each for each in _results(page) if not each.startswith(cpu)]
    sections = ["\n".join(_result_lines(figures)).rstrip() + "\n", *others]
    head = (
        "# Performance\n\nGantry beside Apache RocketMQ and rocketmq-rust, written by"
        " `make bench-peers`. A run replaces\nthe results of its kind of CPU.\n"
    )
    method = f"{METHOD_HEADING}\n\n{METHOD}"
    return "\n".join((head, *sections, BOUNDS, core_model.section(), method))


def _results(page: str) -> list[str]:
    """The sections of results of a page."""
    parts = re.split(r"(?m)^(?=## )", page)
    return [part.rstrip() + "\n" for part in parts if part.startswith(RESULTS)]


def _result_lines(figures: Figures) -> Iterator[str]:
    machine, options = figures["machine"], figures["options"]
    yield f"{RESULTS}{machine['cpu']}, {str(machine['measured_at'])[:10]}"
    yield ""
    yield (
        f"Machine: {machine['cpus']} CPUs, {machine['cpu']}, {machine['memory_mb'] // 1024} GiB, "
        f"{machine['file_system']}, Linux {machine['kernel']}, Python {machine['python']}; commit "
        f"{machine['commit']}. {options['rounds']} rounds of {options['seconds']:g} s, warm-up of "
        f"{options['warm_up_seconds']:g} s, mixed load of {options['mixed_seconds']:g} s, a free "
        f"page cost {figures.get('free_page_us', 0):g} µs."
    )
    yield ""
    for name, tuning in figures["tuning"].items():
        yield f"- **{figures['peers'][name]}** (`{name}`): {tuning}"
    for name, reason in figures["skipped"].items():
        yield f"- `{name}` was skipped: {reason}"
    for lines in (_ratio_lines, _bare_lines, _scenario_lines, _other_lines, _kill_lines):
        yield ""
        yield from lines(figures)


def _columns(figures: Figures) -> dict[str, str]:
    """The peers with a column of ratios: name and title."""
    return {name: title for name, title in figures["peers"].items() if name not in (OURS, PLAIN)}


def _ratio_lines(figures: Figures) -> Iterator[str]:
    peers = _columns(figures)
    heads = ("", "Gantry", *(part for each in peers.values() for part in (each, "ratio")))
    yield f"| {' | '.join(heads)} | target, {figures['peers'].get(JAVA_5, 'Java')} |"
    yield f"|---|{'---:|' * len(heads)}"
    for row in ROWS:
        cells = [row.title.format(**figures["options"])]
        cells.append(f"{_text(row.figure(figures, row.ours))} {row.unit}")
        for name in peers:
            ratio = row.ratio(figures, name)
            cells.append(_text(row.figure(figures, name)))
            cells.append("—" if ratio is None else f"**{ratio:.1f}**")
        yield f"| {' | '.join((*cells, row.target))} |"


def _bare_lines(figures: Figures) -> Iterator[str]:
    """The broker's rate relative to its kernel without Python."""
    if bare := figures.get("bare_loop"):
        yield (
            f"Gantry reaches **{bare['ratio']:.0%}** of the send rate of its kernel under a bare"
            f" event loop in C (64 connections x 1, files in memory; rounds between"
            f" {bare['ratio_min']:.0%} and {bare['ratio_max']:.0%}; the target is 85 %)."
        )


def _scenario_lines(figures: Figures) -> Iterator[str]:
    yield "| scenario | broker | msg/s | answered/s | CPU µs/msg | p50 µs | p99 µs | p99.9 µs |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    parts = {
        **figures["scenarios"],
        "64x1 at half of Java's peak": figures["offered"],
        "mixed": figures["mixed"],
        "sync-64x1": figures["sync-64x1"],
        **figures["replication"],
        **figures["signed"],
        **figures["tls"],
    }
    for scenario, brokers in parts.items():
        for who, each in brokers.items():
            cells = " | ".join(_text(each.get(figure)) for figure in LOAD_FIGURES)
            yield f"| {scenario} | {_named(who, each)} | {cells} |"


def _named(who: str, each: Figures) -> str:
    """The name of a broker, and the reason of a row without metrics."""
    return f"{who}; fails: {each['failed']}" if "failed" in each else who


def _other_lines(figures: Figures) -> Iterator[str]:
    yield "| broker | start, s | Java producer, msg/s | Java consumer, msg/s | memory, MB |"
    yield "|---|---:|---:|---:|---:|"
    for who, start in figures["start_seconds"].items():
        client = figures["java-client"].get(who, {})
        cells = (start, client.get("sent_per_second"), client.get("received_per_second"))
        yield f"| {who} | {' | '.join(map(_text, (*cells, _memory(figures, who))))} |"


def _kill_lines(figures: Figures) -> Iterator[str]:
    yield "| broker | kills | acknowledged | lost | duplicates | sent/s | longest restart, s |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for who, each in figures["kills"].items():
        cells = " | ".join(_text(each.get(figure)) for figure in KILL_FIGURES)
        yield f"| {_named(who, each)} | {cells} |"


def ratios(figures: Figures) -> str:
    """The ratios for a terminal, of the measured rows."""
    peers = _columns(figures)
    width = max([len(title) for title in peers.values()] + [12]) + 2
    heads = "".join(f"{title:>{width}}{'ratio':>7}" for title in peers.values())
    lines = [f"{'':<36}{'Gantry':>12}{heads}{'target':>14}"]
    for row in ROWS:
        values = {name: row.figure(figures, name) for name in (row.ours, *peers)}
        if any(values.values()):
            cells = "".join(
                f"{_text(values[name]):>{width}}{_ratio_text(row.ratio(figures, name)):>7}"
                for name in peers
            )
            lines.append(
                f"{row.title.format(**figures['options']):<36}{_text(values[row.ours]):>12}{cells}"
                f"{row.target:>14}"
            )
    for name, each in figures.get("kills", {}).items():
        lines.append(f"kills of {name}: {each}")
    return "\n".join(lines)


def _ratio_text(ratio: float | None) -> str:
    return "—" if ratio is None else f"{ratio:.2f}"


def _text(value: float | None) -> str:
    return "—" if value is None else f"{value:,}"
