"""The performance page, from results as the benchmarks write them."""

from typing import Any

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


def test_a_page_without_bare_loop_omits_the_ratio() -> None:
    assert "bare" not in render()


def test_the_page_states_the_rate_relative_to_a_bare_loop() -> None:
    rendered = render(bare_loop={"ratio": 0.78, "ratio_min": 0.7, "ratio_max": 0.81})
    assert "Gantry reaches **78%** of the send rate" in rendered
    assert "between 70% and 81%" in rendered


def test_the_page_states_the_cost_of_a_free_page_and_the_skipped_peers() -> None:
    rendered = render()
    assert "a free page cost 9.8 µs" in rendered
    assert f"`{RUST}` was skipped: cargo is not installed" in rendered


def test_the_response_rate_has_a_separate_column() -> None:
    assert f"| batch-32 | {OURS} | 50,000 | 60,000 |" in render()


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
