"""Render docs/performance.md and the table of ratios from the results of `make bench-peers`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

OURS, PLAIN, JAVA = "gantry", "gantry-plain", "java-5.3.3"

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison: title, metric of a broker, target, and whether less is better."""

    title: str
    unit: str
    figure: Callable[[Figures, str], float | None]
    aim: float
    less_is_better: bool = False
    ours: str = OURS

    def ratio(self, figures: Figures) -> float | None:
        """Gantry's advantage over Java 5.3 as a factor; None when a metric is missing."""
        mine, other = self.figure(figures, self.ours), self.figure(figures, JAVA)
        if not mine or not other:
            return None
        return other / mine if self.less_is_better else mine / other


def _load(name: str, field: str) -> Callable[[Figures, str], float | None]:
    return _in("scenarios", name, field)


def _in(section: str, *names: str) -> Callable[[Figures, str], float | None]:
    """A field of a section; the name of a broker is before the field."""

    def find(figures: Figures, who: str) -> float | None:
        found: Any = figures.get(section, {})
        for name in (*names[:-1], who, names[-1]):
            found = found.get(name, {})
        return found or None

    return find


def _memory(figures: Figures, who: str) -> float | None:
    both = figures.get("memory", {}).get(who, {}).get("both", {})
    own: float | None = both.get("anon")
    return own


def _cpu(what: str, scenario: str) -> Row:
    cpu_us = _load(scenario, "cpu_us_per_message")
    return Row(f"broker CPU {what}", "µs", cpu_us, 5, less_is_better=True)


ROWS: Final = (
    Row("sends, 64 connections x 1", "msg/s", _load("send-64x1", "rate"), 2.5),
    Row("sends, 1 connection x 64", "msg/s", _load("send-1x64", "rate"), 4.5),
    Row("Java client, 64 threads, 128 B", "msg/s", _in("java_client", "sent_per_second"), 1.5),
    Row("batches of 32", "msg/s", _load("batch-32", "rate"), 4.5),
    Row("SYNC_FLUSH, 64 connections x 1", "msg/s", _in("sync-64x1", "rate"), 3),
    Row("signed sends, 64 connections x 1", "msg/s", _in("signed", "signed-64x1", "rate"), 2),
    Row("signed sends, 1 connection x 64", "msg/s", _in("signed", "signed-1x64", "rate"), 2),
    Row("TLS, 64 connections x 1", "msg/s", _in("tls", "tls-64x1", "rate"), 1.5),
    Row("TLS, 1 connection x 64", "msg/s", _in("tls", "tls-1x64", "rate"), 1.5),
    Row("TLS, signed, 64 x 1", "msg/s", _in("signed", "tls-signed-64x1", "rate"), 1.5),
    Row("TLS, signed, 1 x 64", "msg/s", _in("signed", "tls-signed-1x64", "rate"), 1.5),
    Row("pulls of 32 from a backlog", "msg/s", _load("pull-32", "rate"), 2),
    _cpu("for a send, 64 x 1", "send-64x1"),
    _cpu("for a send, 1 x 64", "send-1x64"),
    _cpu("for a message of a batch", "batch-32"),
    Row("p99 at half of Java's peak", "µs", _in("offered", "p99_us"), 2, less_is_better=True),
    Row("without the kernel, 64 x 1", "msg/s", _load("send-64x1", "rate"), 1, ours=PLAIN),
    Row("memory after {messages:,} messages", "MB", _memory, 10, less_is_better=True),
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

METHOD: Final = """\
A broker shares the cores of this machine with the load generator (`benchmarks/loadgen.c`: one
thread, one epoll). Each scenario runs on the brokers in turn, {rounds} rounds of {seconds:g} s
after an uncounted round, and the medians are compared. All brokers but the measured one are
stopped (SIGSTOP) meanwhile, and dirty pages of earlier runs are flushed before each run. The JVMs
get a warm-up of {warm_up_seconds:g} s first. Each broker is started three times on an empty
store. Bodies have 1 KiB unless stated otherwise, every message has a unique key and a key, and
queries by key work. Brokers run with RocketMQ's default settings, except
`waitTimeMillsInSendQueue`, so that no broker rejects requests under load. Java has the options of
RocketMQ's own start script with a heap of 2 GiB (8 GiB in the script) without pre-touch. Memory
is the resident memory of name server and broker without file pages.

A run ends when consumers can read all sent messages. RocketMQ's broker responds to a send before
its dispatcher has entered the message into consume queue and index. In a closed loop of batches
the dispatcher falls behind, and the time until `dispatchBehindBytes` is 0 belongs to the run. The
rate of responses has a separate column. Gantry enters a message before its response.

Signed sends go to brokers with access control, from an account that may send to one topic: ACL 2.0
in Gantry and RocketMQ 5, ACL 1.0 in RocketMQ 4. The load generator computes each signature.

Sends with TLS use TLS 1.3 with TLS_AES_128_GCM_SHA256 on all brokers, which have their default
settings, and the certificate of the test mode. Java uses the TLS of the JDK: the Maven packages of
the broker come without netty-tcnative. Gantry uses Python's OpenSSL.

The Java client's producer and consumer resemble RocketMQ's own benchmark programs, which are in
no package registry: one producer shared by 64 threads, one consumer with 20 threads.

A closed loop measures throughput; its latencies are those of a saturated broker. The p99 at an
offered load comes from an open loop, counted from the due time of a request.

Before each run of the load generator the memory is filled with page cache
(`benchmarks/ballast.py`), the state of a machine after hours of broker traffic. A free page cost
{free_page_us:g} µs here, because a virtual machine may request the page from its host, and a log
takes a new page for every three messages of 1 KiB: without the page cache, the benchmark would
measure the host.

Not measured: more than two cores (Java uses them inside one broker, Gantry with more brokers),
replication, and mixed message sizes. Results of other machines differ;
ratios differ less.
"""


def render(figures: Figures) -> str:
    """The page of the documentation."""
    machine = figures["machine"]
    lines = [
        "# Performance",
        "",
        "Gantry beside Apache RocketMQ 5.3.3 and 4.9.7, written by `make bench-peers`.",
        "",
        f"Machine: {machine['cpus']} CPUs, {machine['cpu']}, {machine['memory_mb'] // 1024} GiB, "
        f"{machine['file_system']}, Linux {machine['kernel']}, Python {machine['python']}; "
        f"{str(machine['measured_at'])[:10]}, commit {machine['commit']}.",
        "",
        *_ratio_lines(figures),
        "",
        *_bare_lines(figures),
        "## All results",
        "",
        *_scenario_lines(figures),
        "",
        *_other_lines(figures),
        "",
        "## Method and limits",
        "",
        METHOD.format(free_page_us=figures["free_page_us"], **figures["options"]),
    ]
    return "\n".join(lines)


def _ratio_lines(figures: Figures) -> list[str]:
    lines = [
        "| | Gantry | Java 5.3.3 | ratio | target |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in ROWS:
        ratio = row.ratio(figures)
        cells = (
            row.title.format(**figures["options"]),
            f"{_text(row.figure(figures, row.ours))} {row.unit}",
            f"{_text(row.figure(figures, JAVA))} {row.unit}",
            "—" if ratio is None else f"**{ratio:.1f}**",
            f"{row.aim:g}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    start = figures["start_seconds"]
    lines.append(
        f"| start to ready, empty store | {start[OURS]} s | {start[JAVA]} s | "
        f"**{start[JAVA] / start[OURS]:.1f}** | under 0.7 s |"
    )
    return lines


def _bare_lines(figures: Figures) -> list[str]:
    """The broker's rate relative to its kernel without Python."""
    bare = figures.get("bare_loop")
    if bare is None:
        return []
    return [
        f"Gantry reaches **{bare['ratio']:.0%}** of the send rate of its kernel under a bare event"
        f" loop in C (64 connections x 1, files in memory; rounds between {bare['ratio_min']:.0%}"
        f" and {bare['ratio_max']:.0%}; the target is 75 %).",
        "",
    ]


def _scenario_lines(figures: Figures) -> list[str]:
    lines = [
        "| scenario | broker | msg/s | answered/s | CPU µs/msg | p50 µs | p99 µs | p99.9 µs |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    parts = {
        **figures["scenarios"],
        "64x1 at half of Java's peak": figures["offered"],
        "sync-64x1": figures["sync-64x1"],
        **figures["signed"],
        **figures["tls"],
    }
    for scenario, brokers in parts.items():
        for who, each in brokers.items():
            cells = " | ".join(_text(each[figure]) for figure in LOAD_FIGURES)
            lines.append(f"| {scenario} | {who} | {cells} |")
    return lines


def _other_lines(figures: Figures) -> list[str]:
    lines = [
        "| broker | start, s | Java producer, msg/s | Java consumer, msg/s | memory, MB |",
        "|---|---:|---:|---:|---:|",
    ]
    for who, start in figures["start_seconds"].items():
        client = figures["java_client"].get(who, {})
        cells = (start, client.get("sent_per_second"), client.get("received_per_second"))
        texts = " | ".join(_text(each) for each in (*cells, _memory(figures, who)))
        lines.append(f"| {who} | {texts} |")
    return lines


def ratios(figures: Figures) -> str:
    """The ratios for a terminal."""
    lines = [f"{'':<40}{'gantry':>12}{'java 5.3.3':>12}{'ratio':>8}{'target':>8}"]
    for row in ROWS:
        ratio = row.ratio(figures)
        lines.append(
            f"{row.title.format(**figures['options']):<40}"
            f"{_text(row.figure(figures, row.ours)):>12}{_text(row.figure(figures, JAVA)):>12}"
            f"{'—' if ratio is None else f'{ratio:.2f}':>8}{row.aim:>8g}"
        )
    return "\n".join(lines)


def _text(value: float | None) -> str:
    return "—" if value is None else f"{value:,}"
