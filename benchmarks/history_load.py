"""Metrics of thousands of topics and groups, and a store with 30 days of them.

A share of the names is active: rates vary by Poisson counts around a daily curve, lag drains and
builds up. The others are idle: all values stay 0. `write_days` leaves a store as the sampler does:
samples in frames and hours, minutes in days. One day is computed; the other days are copies of its
rows.
"""

from typing import Final

import numpy as np

from console.services.history.blocks import Values
from console.services.history.metrics import (
    BY_NAME,
    BY_NUMBER,
    DAY_MS,
    HOUR_MS,
    INTERVAL_MS,
    SCOPES,
    Scope,
)
from console.services.history.rows import store_values
from console.services.history.samples import CLUSTER_NAME, Samples
from console.services.history.store import Store
from console.services.history.upkeep import Upkeep
from console.services.history.writing import Writer

DAYS: Final = 30
BROKER: Final = "broker-a"


class Load:
    """Random metrics of named topics, each with one group, and of their cluster of one broker."""

    def __init__(self, names: int, active: float) -> None:
        self._random = np.random.default_rng(7)
        self._names: dict[Scope, list[str]] = {
            "cluster": [CLUSTER_NAME],
            "topic": [f"topic-{number:05}" for number in range(names)],
            "group": [f"group-{number:05}" for number in range(names)],
            "broker": [BROKER],
        }
        scale = self._random.lognormal(1.5, 2.0, names)
        self._scale = np.where(self._random.random(names) < active, scale, 0.0)
        self._minute = np.zeros((6, names))
        self._lag = np.zeros(names)
        self._dead = np.zeros(names)

    def values(self, at_ms: int) -> dict[int, Values]:
        """The next value of each name by number of the metric: rates are averages of a minute, as
        brokers report them.
        """
        daily = 1.2 + np.sin(at_ms / DAY_MS * 2 * np.pi)
        puts = self._random.poisson(self._scale * daily * 10)
        self._minute = np.concatenate([self._minute[1:], puts[None]])
        rate = self._minute.mean(axis=0) / 10
        waiting = self._random.poisson(self._scale * 2)
        stuck = self._random.random(puts.size) < 0.002
        self._lag = np.where(stuck, self._lag + puts, waiting)
        self._dead += self._random.random(puts.size) < 0.0005 * (self._scale > 0)
        age_s = np.where(self._lag > 0, np.where(stuck, 10.0, self._random.random(puts.size)), 0.0)
        rates = {"produce_rate": rate.sum(keepdims=True), "consume_rate": rate.sum(keepdims=True)}
        lags = {"lag": self._lag.sum(keepdims=True), "dead_letters": self._dead.sum(keepdims=True)}
        disk = {"disk_ratio": np.array([0.4])}
        latency = self._random.gamma(4.0, 0.5, 1)
        by_scope: dict[Scope, dict[str, Values]] = {
            "cluster": {**rates, **lags, **disk},
            "topic": {"produce_rate": rate, "consume_rate": rate, "lag": self._lag},
            "group": {
                "consume_rate": rate,
                "lag": self._lag,
                "lag_s": age_s,
                "dead_letters": self._dead.copy(),
                "clients": np.full(puts.size, 2.0),
            },
            "broker": {**rates, **disk, "connections": np.array([41.0]), "send_p99_ms": latency},
        }
        return {
            BY_NAME[scope, name].number: values
            for scope, metrics in by_scope.items()
            for name, values in metrics.items()
        }

    def samples(self, at_ms: int) -> Samples:
        """The next values by name, as the sampler stores them."""
        return {
            number: dict(zip(self._names[BY_NUMBER[number].scope], values.tolist(), strict=True))
            for number, values in self.values(at_ms).items()
        }

    def hour(self, begin_ms: int) -> dict[int, Values]:
        """The samples of an hour: a row per name, a column per sample."""
        times = range(begin_ms, begin_ms + HOUR_MS, INTERVAL_MS)
        columns = [self.values(at_ms) for at_ms in times]
        return {number: np.stack([each[number] for each in columns], 1) for number in columns[0]}

    def rows_of_names(self, first_ms: int, last_ms: int) -> list[tuple[int, int, str, int, int]]:
        """The rows of the table `name`."""
        return [
            (SCOPES[scope], slot, name, first_ms, last_ms)
            for scope, names in self._names.items()
            for slot, name in enumerate(names)
        ]


def write_days(store: Store, load: Load, now_ms: int, days: int = DAYS) -> int:
    """Write `days` complete days, the open day and the open hour; return the bytes in use."""
    today_ms, hour_ms = now_ms // DAY_MS * DAY_MS, now_ms // HOUR_MS * HOUR_MS
    first_ms = today_ms - days * DAY_MS
    with store.transaction():
        store.add_names(load.rows_of_names(first_ms, now_ms))
    writer = Writer(store)
    yesterday_ms = today_ms - DAY_MS
    for begin_ms in range(yesterday_ms, today_ms, HOUR_MS):
        with store.transaction():
            for number, values in load.hour(begin_ms).items():
                store_values(store, "hour", BY_NUMBER[number], begin_ms, values)
    with store.transaction():
        copy_rows(store, "hour", yesterday_ms, hour_ms - DAY_MS, DAY_MS)
    upkeep = Upkeep(store, writer.reload, keep_days=days + 1, bytes_max=1 << 40)
    upkeep.run(now_ms, lambda: True)
    for back in range(1, days):
        with store.transaction():
            copy_rows(store, "day", yesterday_ms, today_ms, -back * DAY_MS)
    for at_ms in range(hour_ms, now_ms - INTERVAL_MS, INTERVAL_MS):
        writer.append(at_ms, load.samples(at_ms), {})
    return store.size_bytes()


def copy_rows(store: Store, table: str, begin_ms: int, end_ms: int, later_ms: int) -> None:
    """Copy the rows that begin in a range to another time."""
    store._change(
        f"INSERT INTO {{t}}{table} ({{key}}metric, segment, begin_ms, data)"
        f" SELECT {{value}}metric, segment, begin_ms + ?, data FROM {{t}}{table}"
        " WHERE {own} AND begin_ms >= ? AND begin_ms < ?",
        (later_ms, begin_ms, end_ms),
    )
