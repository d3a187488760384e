"""The performance page, from results as the benchmarks write them."""

from typing import Any

import pytest

from benchmarks import page
from benchmarks.peer_brokers import JAVA_5, OURS, PEERS, RUST

BROKERS = (OURS, JAVA_5)


def figures(cpu: str = "a CPU") -> dict[str, Any]:
    load = {
        "rate": 50_000,
        "answered_rate": 60_000,
        "cpu_us_per_message": 10.5,
        "p50_us": 900,
        "p99_us": 2_000,
        "p99.9_us": 3_000,
        "generator_share": 61,
    }
    slower = load | {"rate": 20_000, "cpu_us_per_message": 42.0}
    loads = {OURS: load, JAVA_5: slower}
    signed = ("signed-64x1", "signed-1x64", "tls-signed-64x1", "tls-signed-1x64")
    scenarios = ("send-64x1", "send-1x64", "batch-32", "pull-32")
    return {
        "machine": {
            "cpus": 2,
            "cpu": cpu,
            "memory_mb": 24_000,
            "file_system": "ext4",
            "kernel": "6.1",
            "python": "3.11",
            "measured_at": "2026-01-02T03:04:05",
            "commit": "abc",
        },
        "free_page_us": 9.8,
        "options": {
            "seconds": 4,
            "rounds": 3,
            "warm_up_seconds": 60,
            "mixed_seconds": 180,
            "messages": 10_000_000,
        },
        "peers": {name: PEERS[name].title for name in BROKERS},
        "tuning": {name: PEERS[name].tuning for name in BROKERS},
        "skipped": {RUST: "cargo is not installed"},
        "start_seconds": {OURS: 0.38, JAVA_5: 4.2},
        "scenarios": dict.fromkeys(scenarios, loads),
        "offered": loads,
        "mixed": loads,
        "sync-64x1": {OURS: load, JAVA_5: {"failed": "system busy"}},
        "replication": {
            "replica-sync-64x1": loads,
            "replica-async-64x1": loads,
            "replica-none-64x1": {OURS: load | {"rate": 55_000, "cpu_us_per_message": 10.0}},
        },
        "signed": dict.fromkeys(signed, loads),
        "tls": dict.fromkeys(("tls-64x1", "tls-1x64"), loads),
        "java-client": {},
        "memory": {},
        "kills": {
            OURS: {"kills": 5, "acknowledged": 90_000, "lost": 0},
            JAVA_5: {"failed": "TimeoutError"},
        },
    }


def render(**changes: Any) -> str:
    return page.render(figures() | changes, "")


SERVER = {
    "rate": 100_000.0,
    "cpu_us": 5.0,
    "cpu_share": 50.0,
    "generator_us": 9.5,
    "generator_own_us": 0.8,
    "generator_share": 95.0,
    "p99_us": 400.0,
}


def bounds(*, null: float = 100_000, bare: float = 55_000) -> dict[str, Any]:
    """Bounds of sends of 64 x 1: rates of the null server and of the bare loop."""
    sends = {
        "ratio": 0.78,
        "ratio_min": 0.7,
        "ratio_max": 0.81,
        "null": SERVER | {"rate": null},
        "copy": SERVER | {"rate": null - 1_000},
        "bare": SERVER | {"rate": bare},
        "broker": SERVER | {"rate": 50_000.0, "cpu_us": 10.5},
    }
    return {
        "measured_at": "2026-01-03T04:05:06+00:00",
        "commit": "def",
        "loads": {"send-64x1": sends, "offered": {"null": SERVER, "broker": SERVER}},
    }


def test_a_run_keeps_the_decisions_of_the_page() -> None:
    decisions = f"{page.DECISIONS}\n\n- **A prototype.** Not in use.\n"
    first = page.render(figures(), f"# Performance\n\n{decisions}\n## Other\n\ntext\n")
    assert first.count(decisions) == 1
    assert page.render(figures(), first) == first


def test_a_page_without_bounds_has_verdicts_without_a_bound() -> None:
    rendered = render()
    assert "under a bare" not in rendered
    assert "| sends, 64 connections x 1 | 3 | 2.5 | — | — | open |" in rendered
    assert "| start to ready, empty store | ≤ 0.4 s | 0.38 | — | — | reached |" in rendered
    assert "| SYNC_FLUSH, 64 connections x 1 | 3.5 | — | — | — | not measured |" in rendered


def test_the_page_states_the_rate_relative_to_a_bare_loop() -> None:
    rendered = render(bounds=bounds())
    assert "Gantry reaches **78%** of the send rate" in rendered
    assert "between 70% and 81%; the target of 85% is open" in rendered


def test_the_page_has_the_servers_of_the_bounds_and_their_generator() -> None:
    rendered = render(bounds=bounds())
    assert "measured on 2026-01-03T04:05 at commit def" in rendered
    assert "| send-64x1 | null | 100,000 | 5.0 | 50.0 | 9.5 | 0.8 | 95.0 | 400.0 |" in rendered
    assert "| offered | broker | 100,000.0 | 5.0 |" in rendered


@pytest.mark.parametrize(
    ("null", "expected"),
    [
        # Java sends 20,000 a second, Gantry 50,000; the target is 3.
        (100_000, "5.00 | open: 3 is 60% of the null server |"),
        (60_000, "3.00 | open: 3 is 100% of the null server |"),
        (52_000, "2.60 | bounded by TCP of one core: 3 is 115% of the null server |"),
        (49_000, "2.45 | open: faster than the null server |"),
    ],
)
def test_a_bound_below_the_target_bounds_the_row(null: float, expected: str) -> None:
    rendered = render(bounds=bounds(null=null, bare=44_000))
    assert f"| sends, 64 connections x 1 | 3 | 2.5 | 2.20 | {expected}" in rendered


def test_bounds_of_cpu_time_and_latency_are_less() -> None:
    rendered = render(bounds=bounds())
    cpu = "| broker CPU for a send, 64 x 1 | 5 | 4.0 | 8.40 | 8.40 | open: 5 is 60% of"
    assert cpu in rendered
    p99 = (
        "| p99 at half of Java's peak | 6 | 1.0 | — | 5.00 | bounded by TCP of one core: 6 is 120%"
    )
    assert p99 in rendered


def test_the_page_states_the_cost_of_a_free_page_and_the_skipped_peers() -> None:
    rendered = render()
    assert "a free page cost 9.8 µs" in rendered
    assert f"`{RUST}` was skipped: cargo is not installed" in rendered


def test_the_response_rate_has_a_separate_column() -> None:
    assert f"| batch-32 | {OURS} | 50,000 | 60,000 |" in render()


def test_the_share_of_the_generator_has_a_column() -> None:
    assert "| 900 | 2,000 | 3,000 | 61 |" in render()


def test_rows_have_ratios_limits_and_failures() -> None:
    rendered = render()
    assert "| sends, 64 connections x 1 | 50,000 msg/s | 20,000 | **2.5** | 3 |" in rendered
    assert "| broker CPU for a send, 64 x 1 | 10.5 µs | 42.0 | **4.0** | 5 |" in rendered
    assert "| start to ready, empty store | 0.38 s | 4.2 | **11.1** | ≤ 0.4 s |" in rendered
    assert "| SYNC_MASTER with a slave, 64 x 1 | 50,000 msg/s | 20,000 | **2.5** | 2 |" in rendered
    cost = "| sends that an asynchronous slave costs | 9.1 % | — | — | ≤ 15 % |"
    assert cost in rendered
    assert "| CPU of the master per send it costs | 5.0 % | — | — | ≤ 15 % |" in rendered
    assert f"| sync-64x1 | {JAVA_5}; fails: system busy | — |" in rendered
    assert f"| {OURS} | 5 | 90,000 | 0 |" in rendered
    assert f"| {JAVA_5}; fails: TimeoutError | — |" in rendered


def test_a_run_replaces_the_results_of_its_cpu_only() -> None:
    both = page.render(figures("New Xeon"), page.render(figures("Old EPYC"), ""))
    again = page.render(figures("New Xeon") | {"skipped": {}}, both)
    for rendered in (both, again, page.render(figures("Old EPYC"), again)):
        assert rendered.count(page.RESULTS) == 2
        assert rendered.count(page.METHOD_HEADING) == 1
    assert both.count("cargo is not installed") == 2
    assert again.count("cargo is not installed") == 1


def test_the_ratios_of_one_part_leave_the_others_out() -> None:
    whole = figures()
    part = {name: whole[name] for name in ("machine", "options", "peers", "tls")}
    rows = {row[:36].strip(): row.split()[-2] for row in page.ratios(part).splitlines()[1:]}
    assert rows == {"TLS, 64 connections x 1": "2.50", "TLS, 1 connection x 64": "2.50"}
