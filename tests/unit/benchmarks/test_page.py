"""The performance page, from results as the benchmarks write them."""

from typing import Any

from benchmarks import page

BROKERS = ("gantry", "gantry-plain", "java-4.9.7", "java-5.3.3")


def figures() -> dict[str, Any]:
    load = {
        "rate": 50_000,
        "answered_rate": 60_000,
        "cpu_us_per_message": 10.5,
        "p50_us": 900,
        "p99_us": 2_000,
        "p99.9_us": 3_000,
    }
    signed = ("signed-64x1", "signed-1x64", "tls-signed-64x1", "tls-signed-1x64")
    scenarios = ("send-64x1", "send-1x64", "batch-32", "pull-32")
    return {
        "machine": {
            "cpus": 2,
            "cpu": "a CPU",
            "memory_mb": 24_000,
            "file_system": "ext4",
            "kernel": "6.1",
            "python": "3.11",
            "measured_at": "2026-01-02T03:04:05",
            "commit": "abc",
        },
        "free_page_us": 9.8,
        "options": {"seconds": 4, "rounds": 3, "warm_up_seconds": 60, "messages": 10_000_000},
        "start_seconds": dict.fromkeys(BROKERS, 0.5),
        "scenarios": {name: dict.fromkeys(BROKERS, load) for name in scenarios},
        "offered": dict.fromkeys(BROKERS, load),
        "sync-64x1": dict.fromkeys(BROKERS, load),
        "signed": {name: dict.fromkeys(BROKERS, load) for name in signed},
        "tls": {name: dict.fromkeys(BROKERS, load) for name in ("tls-64x1", "tls-1x64")},
        "java_client": {},
        "memory": {},
    }


def test_a_page_without_bare_loop_omits_the_ratio() -> None:
    assert "bare" not in page.render(figures())


def test_the_page_states_the_rate_relative_to_a_bare_loop() -> None:
    found = {"ratio": 0.78, "ratio_min": 0.7, "ratio_max": 0.81}
    rendered = page.render(figures() | {"bare_loop": found})
    assert "Gantry reaches **78%** of the send rate" in rendered
    assert "between 70% and 81%" in rendered


def test_the_page_states_the_cost_of_a_free_page() -> None:
    assert "A free page cost 9.8 µs here" in " ".join(page.render(figures()).split())


def test_the_response_rate_has_a_separate_column() -> None:
    assert "| batch-32 | java-5.3.3 | 50,000 | 60,000 |" in page.render(figures())


def test_the_ratios_of_one_part_leave_the_others_open() -> None:
    whole = figures()
    part = {name: whole[name] for name in ("machine", "options", "tls")}
    rows = {row[:40].strip(): row.split()[-2] for row in page.ratios(part).splitlines()[1:]}
    assert rows["TLS, 64 connections x 1"] == "1.00"
    assert rows["sends, 64 connections x 1"] == "—"
