"""Render docs/performance.md and the table of ratios from the results of `make bench-peers`.

The page has one section of results per kind of CPU: a run replaces the section of its CPU and keeps
the sections of others.
"""

import re
from collections.abc import Iterator
from typing import Final

from benchmarks import core_model
from benchmarks.bounds import BARE, COPY, LOADS, NULL
from benchmarks.comparison import ROWS, Figures, memory, verdict
from benchmarks.peer_brokers import JAVA_5, OURS, PLAIN

#: Heading of a section of results: the CPU, then the date.
RESULTS: Final = "## Results on "
METHOD_HEADING: Final = "## Method and limits"


#: Columns of the table with all metrics of each scenario and broker, in order.
LOAD_FIGURES: Final = (
    "rate",
    "answered_rate",
    "cpu_us_per_message",
    "p50_us",
    "p99_us",
    "p99.9_us",
    "generator_share",
)
#: Columns of the table of bounds, in order.
BOUND_FIGURES: Final = (
    "rate",
    "cpu_us",
    "cpu_share",
    "generator_us",
    "generator_own_us",
    "generator_share",
    "p99_us",
)
#: Target of the broker's rate as a share of the rate of its kernel under a bare loop.
BARE_RATIO_MIN: Final = 0.85
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

The load generator has one thread, so the share of its core shows whether a rate is the generator's.
The bounds (`benchmarks/bounds.py`) are servers that do less than any broker. The null server
receives requests, reads their lengths and sends fixed answers of a broker's size, from one thread
with one epoll, with or without one copy of each message through a mapped file; at SYNC_FLUSH with
one `fdatasync()` for all sends of an event-loop iteration, from the loop, or (`thread`) from a
thread that wakes the loop, as in Gantry, whose loop never waits for the disk. A broker with one
thread cannot exceed the null server, so the ratio of the null server to Java 5.5.0 bounds a row: a
larger target is out of reach with this load generator on these cores. The bare loop is Gantry's
compiled kernel under an event loop in C. Files of the bounds are on a memory file system, except at
SYNC_FLUSH.

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

#: The section of the decisions; written by hand, a run keeps the section.
DECISIONS: Final = "## Bounds and decisions"


def render(figures: Figures, page: str) -> str:
    """The page of the documentation: the results, and what stays of the earlier `page`.

    The results of other CPUs and the decisions stay.
    """
    cpu = f"{RESULTS}{figures['machine']['cpu']},"
    others = [each for each in _sections(page, RESULTS) if not each.startswith(cpu)]
    decisions = _sections(page, DECISIONS)
    sections = ["\n".join(_result_lines(figures)).rstrip() + "\n", *others]
    head = (
        "# Performance\n\nGantry beside Apache RocketMQ and rocketmq-rust, written by"
        " `make bench-peers`. A run replaces\nthe results of its kind of CPU.\n"
    )
    method = f"{METHOD_HEADING}\n\n{METHOD}"
    return "\n".join((head, *sections, *decisions, core_model.section(), method))


def _sections(page: str, heading: str) -> list[str]:
    """The sections of a page with a heading that begins so."""
    parts = re.split(r"(?m)^(?=## )", page)
    return [part.rstrip() + "\n" for part in parts if part.startswith(heading)]


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
    for lines in SECTIONS:
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


def _verdict_lines(figures: Figures) -> Iterator[str]:
    """Every target with its ratio, the bounds of the ratio, and the verdict."""
    reference = figures["peers"].get(JAVA_5, "Java")
    yield f"| | target | ratio to {reference} | bare loop | null server | verdict |"
    yield "|---|---:|---:|---:|---:|---|"
    for row in [each for each in ROWS if each.aim is not None]:
        reached = row.figure(figures, row.ours) if row.is_limit else row.ratio(figures, JAVA_5)
        cells = (
            row.target,
            _text(reached if row.is_limit or reached is None else round(reached, 2)),
            _ratio_text(row.bound_ratio(figures, JAVA_5, BARE)),
            _ratio_text(row.bound_ratio(figures, JAVA_5, NULL, COPY)),
            verdict(row, figures),
        )
        yield f"| {row.title.format(**figures['options'])} | {' | '.join(cells)} |"


def _bound_lines(figures: Figures) -> Iterator[str]:
    """The servers that do less than a broker, and the broker beside them."""
    if not (bounds := figures.get("bounds")):
        return
    sends = bounds["loads"].get("send-64x1", {})
    if "ratio" in sends:
        is_reached = sends["ratio"] >= BARE_RATIO_MIN
        yield (
            f"Gantry reaches **{sends['ratio']:.0%}** of the send rate of its kernel under a bare"
            f" event loop in C (64 connections x 1, files in memory; rounds between"
            f" {sends['ratio_min']:.0%} and {sends['ratio_max']:.0%}; the target of"
            f" {BARE_RATIO_MIN:.0%} is {'reached' if is_reached else 'open'})."
        )
        yield ""
    yield f"Bounds, measured on {str(bounds['measured_at'])[:16]} at commit {bounds['commit']}:"
    yield ""
    yield (
        "| load | server | msg/s | CPU µs/msg | core, % | generator, µs/msg | without the system"
        " | its core, % | p99 µs |"
    )
    yield f"|---|---|{'---:|' * len(BOUND_FIGURES)}"
    for load, servers in bounds["loads"].items():
        for kind in [kind for kind in LOADS[load].servers if kind in servers]:
            cells = " | ".join(_text(servers[kind][figure]) for figure in BOUND_FIGURES)
            yield f"| {load} | {kind} | {cells} |"


def _scenario_lines(figures: Figures) -> Iterator[str]:
    yield (
        "| scenario | broker | msg/s | answered/s | CPU µs/msg | p50 µs | p99 µs | p99.9 µs"
        " | generator's core, % |"
    )
    yield f"|---|---|{'---:|' * len(LOAD_FIGURES)}"
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
        yield f"| {who} | {' | '.join(map(_text, (*cells, memory(figures, who))))} |"


def _kill_lines(figures: Figures) -> Iterator[str]:
    yield "| broker | kills | acknowledged | lost | duplicates | sent/s | longest restart, s |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for who, each in figures["kills"].items():
        cells = " | ".join(_text(each.get(figure)) for figure in KILL_FIGURES)
        yield f"| {_named(who, each)} | {cells} |"


#: Tables of a section of results, in order.
SECTIONS: Final = (
    *(_ratio_lines, _verdict_lines, _bound_lines),
    *(_scenario_lines, _other_lines, _kill_lines),
)


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
