"""The rows of the comparison with peers: metric, target, and the measured bound of the ratio."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from benchmarks.bounds import COPY, NULL
from benchmarks.peer_brokers import JAVA_5, OURS, PLAIN

Figures = dict[str, Any]

ONE_CORE: Final = "TCP of one core"
SYNCED: Final = "TCP and fdatasync() of one core"


class Bound(NamedTuple):
    """A load that servers without a broker had, too (bounds.py): its name and its metric."""

    load: str
    field: str
    #: The resource of the bound.
    by: str = ONE_CORE


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
    bound: Bound | None = None

    def ratio(self, figures: Figures, peer: str) -> float | None:
        """Gantry's advantage over a peer as a factor; None when a metric is missing."""
        return self._advantage(self.figure(figures, self.ours), self.figure(figures, peer))

    def bound_ratio(self, figures: Figures, peer: str, *servers: str) -> float | None:
        """The largest advantage of the servers over a peer; None without a measured bound."""
        if self.bound is None:
            return None
        load = figures.get("bounds", {}).get("loads", {}).get(self.bound.load, {})
        other = self.figure(figures, peer)
        found = (
            self._advantage(load[each][self.bound.field], other) for each in servers if each in load
        )
        return max((each for each in found if each is not None), default=None)

    def _advantage(self, mine: float | None, other: float | None) -> float | None:
        if not mine or not other:
            return None
        return other / mine if self.less_is_better else mine / other

    def is_reached(self, figures: Figures) -> bool | None:
        """True when the target is reached; None without a target or a metric."""
        if self.aim is None:
            return None
        if self.is_limit:
            mine = self.figure(figures, self.ours)
            return None if mine is None else mine <= self.aim
        ratio = self.ratio(figures, JAVA_5)
        return None if ratio is None else ratio >= self.aim

    @property
    def target(self) -> str:
        """The target as text."""
        if self.aim is None:
            return "—"
        return f"≤ {self.aim:g} {self.unit}" if self.is_limit else f"{self.aim:g}"


def verdict(row: Row, figures: Figures) -> str:
    """Whether a row with a target reaches it, cannot reach it by measurement, or is open."""
    reached = row.is_reached(figures)
    if reached is None:
        return "not measured"
    if reached:
        return "reached"
    bound = row.bound_ratio(figures, JAVA_5, NULL, COPY)
    ratio = row.ratio(figures, JAVA_5)
    if row.bound is None or row.aim is None or bound is None or ratio is None:
        return "open"
    if ratio > bound:
        return "open: faster than the null server"
    share = f"{row.aim:g} is {row.aim / bound:.0%} of the null server"
    return f"bounded by {row.bound.by}: {share}" if bound < row.aim else f"open: {share}"


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


def memory(figures: Figures, who: str) -> float | None:
    """Resident memory of name server and broker, MB."""
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


def _rate(title: str, scenario: str, aim: float) -> Row:
    return Row(title, "msg/s", _load(scenario), aim, bound=Bound(scenario, "rate"))


def _cpu(what: str, scenario: str) -> Row:
    cpu_us = _load(scenario, "cpu_us_per_message")
    bound = Bound(scenario, "cpu_us")
    return Row(f"broker CPU {what}", "µs", cpu_us, 5, less_is_better=True, bound=bound)


def _limit(
    title: str, unit: str, figure: Callable[[Figures, str], float | None], aim: float
) -> Row:
    return Row(title, unit, figure, aim, less_is_better=True, is_limit=True)


ROWS: Final = (
    _rate("sends, 64 connections x 1", "send-64x1", 3),
    _rate("sends, 1 connection x 64", "send-1x64", 5),
    _rate("batches of 32", "batch-32", 4.5),
    _rate("pulls of 32 from a backlog", "pull-32", 2.5),
    Row(
        *("SYNC_FLUSH, 64 connections x 1", "msg/s", _in("sync-64x1", "rate"), 3.5),
        bound=Bound("sync-64x1", "rate", SYNCED),
    ),
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
    Row(
        *("p99 at half of Java's peak", "µs", _in("offered", "p99_us"), 6),
        less_is_better=True,
        bound=Bound("offered", "p99_us"),
    ),
    _limit("mixed load, p99.9 of sends", "µs", _in("mixed", "p99.9_us"), 15_000),
    Row(
        *("mixed load, p99.9 to the consumer", "µs", _in("mixed", "end_to_end_p99.9_us"), None),
        less_is_better=True,
    ),
    Row("without the kernel, 64 x 1", "msg/s", _load("send-64x1"), None, ours=PLAIN),
    Row("memory after {messages:,} messages", "MB", memory, 15, less_is_better=True),
    _limit("start to ready, empty store", "s", _start, 0.4),
)
