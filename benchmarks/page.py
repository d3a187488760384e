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
one `fdatasync()` for all sends of an event-loop iteration. A broker with one thread cannot exceed
the null server, so the ratio of the null server to Java 5.5.0 bounds a row: a larger target is out
of reach with this load generator on these cores. The bare loop is Gantry's compiled kernel under an
event loop in C. Files of the bounds are on a memory file system, except at SYNC_FLUSH.

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

- **Writes of the log beside the loop.** The event loop writes the records of an iteration to the
  log, then the answers are sent. In a prototype the thread of the answers did both, one group at a
  time and in the same order, while the loop received the next group. Broker and generator had
  real-time priority, 4 to 6 rounds. Batches of 32 reached 1.37 times the rate (1.27 to 1.51; 1.38
  instead of 1.52 µs of CPU for a message), sends of 64 x 1 1.45 times (1.37 to 1.52; 7.1 instead
  of 7.0 µs), sends of 1 x 64 1.16 times (1.11 to 1.21; 4.6 instead of 3.7 µs). A thread that
  writes and lets the loop answer gained 2 % for batches; a thread that also copies the bodies and
  computes their CRC was slower than one that only writes (2 rounds). With ordinary priority
  (nice -20) beside other work on both cores, the same prototype gained nothing: batches 0.97 (0.68
  to 1.00), sends of 64 x 1 0.89 (0.42 to 1.05): three threads then share two busy cores. It is
  not in use: the gain needs two free cores, and readers, replication and flush would count records
  as written that are not yet in the file.
- **CRC of pulled records.** Every pull checks the CRC of every record. A broker without the check
  used 0.68 µs per pulled message instead of 0.77 µs (20 rounds; a second unmodified broker:
  0.77 µs) and delivered 5 % more. 12 % is the upper bound for any scheme that remembers checked
  records. No such scheme is in use: `mincore()` states that a page is in memory, but not that the
  page stayed in memory since the last check, and a page read again from a damaged disk would be
  delivered unchecked.
- **Pulls answered at once.** One `sendmsg` copies the records of a pull from the mapped log into
  the socket, in place of a copy into an answer that the writer thread sends at the end of the
  iteration (two brokers of each kind, 9 rounds, a load of 15 on two cores): 0.63 and 0.65 µs per
  pulled message instead of 0.83 and 0.79 µs, 1.2 times the rate. The event loop's thread used
  0.64 µs instead of 0.65 to 0.69 µs, so the writer thread saved nothing; without the thread, the
  copying broker used 0.73 µs. With records of eight queues between each other (33 pieces per
  answer): 0.78 µs instead of 0.85 µs, of which the event loop 0.79 instead of 0.71 µs.
- **Other ways to send pulls** (prototypes, 12 rounds; two unmodified brokers: 0.80 and 0.77 µs;
  `sendmsg` from the mapped log: 0.64 µs). `vmsplice` with `splice`: 0.62 µs. `sendfile`: 0.64 µs,
  and one call per record where queues alternate. MSG_ZEROCOPY: 0.75 µs, since the loopback
  interface copies (SO_EE_CODE_ZEROCOPY_COPIED on every completion). `sendmsg` by the writer
  thread: 0.80 µs; with the CRC in the thread, too: 0.79 µs. SO_BUSY_POLL: 0.88 µs beside 0.82 µs,
  at the same rate. None is in use. `vmsplice` without
  the CRC check reads no byte in the broker: 0.45 µs. That is the bound of a sound scheme for
  checked pages.
- **First round after a start.** 400,000 messages took 3,900 page faults in the first round, 14 in
  later rounds; the CPU per message was 0.79 µs in the first round and 0.75 to 0.81 µs in later
  rounds (four starts). Populating mappings ahead would gain less than the noise of the
  measurement.
- **Two brokers on two cores.** On a quiet Intel Xeon, with the load generator on the same cores,
  two brokers handled 136,672 sends/s of 64 x 1, one broker 136,438 (2026-11-24): 9.63 µs of CPU
  instead of 7.22 µs for each send, since each broker has fewer requests per iteration. A further
  broker started in 0.24 s and had 44 MB resident; after the load, 58 MB without file pages.
- **Fast path in Python.** Without the compiled kernel, a send of 64 x 1 used 22 to 34 µs with the
  fast path in Python, 49 to 51 µs with the slow path only, and 49 to 54 µs in Java 5.5.0. Java uses
  both cores, an interpreted broker one core. An interpreted broker reached 1.1 times Java's rate on
  a quiet Intel Xeon (2026-11-24). On an AMD EPYC with other work (2026-11-28, nice -20, 6 runs of
  4 s) an interpreted broker handled 34,000 to 37,000 sends/s, 28,000 in one disturbed run. Java
  5.5.0 handled 37,876 on the same machine when quiet, so the ratio is 0.9 to 1.0. With the compiled
  kernel, the fast path in Python takes the sends that the kernel leaves, above all those with keys
  or tags outside of ASCII: 25 µs instead of 55 µs. The path stays because of these sends, although
  its rate is not above Java's on both CPUs.
- **Tail at an offered load.** Its cause is not known. All figures are of an AMD EPYC with other
  work (2026-11-28), 19,000 sends/s of 64 x 1. In a recording of `perf sched` (5 s, disturbed: p50
  90 ms) the event loop waited 560 times more than 1 ms for a core, 1.64 s in total. During 1.47 s
  of these waits the load generator ran on the same core. With broker and generator pinned to a core
  each, p99 was still 6.4 to 7.0 ms (4 rounds of 4 s, nice -20), and in a recording (p99 4.0 ms) the
  event loop waited 33 times more than 1 ms in 4 s, mostly behind other processes. A shorter time
  slice of the event loop's thread (`sched_setattr`, Linux 6.12 or newer) showed no effect: p99 was
  5.9 ms with 0.1 ms (rounds of 5.6 to 7.1 ms), 4.2 ms with 0.3 ms (3.9 to 7.2 ms) and 5.7 ms
  without (4.4 to 7.9 ms; 4 rounds of 4 s, nice -20). SCHED_BATCH for the other threads was measured
  in disturbed rounds only. Neither is in use.
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
