"""Print the metrics of bench.json as tables."""

from typing import Any

from benchmarks import bounds, store

# Targets, printed beside the metrics.
AIMS = {
    "send-64x1": "at least 20,000/s",
    "start": "under 0.7 s",
    "memory": "under 150 MB",
}


def print_table(figures: dict[str, Any]) -> None:
    """Print all metrics."""
    if figures.get("scenarios"):
        print_scenarios(figures["scenarios"])
    if "start" in figures:
        start = figures["start"]
        print(f"\nstart of name server and broker: {start['median_seconds']} s ({AIMS['start']})")
    if "memory_mb" in figures:
        print_memory(figures)
    for name, each in figures.get("own", {}).items():
        print(f"\n{name}")
        print_lines(each)
    if "bounds" in figures:
        print("\nthe broker beside servers that do less")
        for line in bounds.lines(figures["bounds"]):
            print(f"  {line}")
    if "traces" in figures:
        print("\ntraces")
        print_traces(figures["traces"])
    if figures["store"]:
        print("\nstore alone")
    for name, each in figures["store"].items():
        for line in store.lines(name, each):
            print(f"{name:<20}{line}")


def print_scenarios(scenarios: dict[str, Any]) -> None:
    """Print the metrics of a broker under load."""
    print(
        f"\n{'scenario':<12}{'msg/s':>10}{'us/msg':>9}{'p50 us':>9}{'p99 us':>9}{'broker':>8}  aim"
    )
    for name, each in scenarios.items():
        latency = each["latency_us"]
        print(
            f"{name:<12}{each['rate']:>10,}{each['broker_cpu_us_per_message']:>9}"
            f"{latency['p50']:>9,}{latency['p99']:>9,}{each['broker_cpu_share']:>8.0%}"
            f"  {AIMS.get(name, '')}"
        )


def print_traces(figures: dict[str, Any]) -> None:
    """Print the rates of reading traces, ingest and rollup."""
    print(f"{figures['records']:,} trace records in {figures['messages']:,} messages")
    for name, each in figures.items():
        if isinstance(each, dict):
            told = ", ".join(f"{key} {value:,}" for key, value in each.items())
            print(f"{name:<20}{told}")


def print_memory(figures: dict[str, Any]) -> None:
    """Print the memory of both processes."""
    print(f"\n{'memory, MB':<36}{'anon':>8}{'file':>8}{'total':>8}")
    stored = figures["memory_mb"]["after_messages"]
    for title, memories in (
        ("at the start", figures["memory_fresh_mb"]),
        (f"after {stored:,} messages", figures["memory_mb"]),
    ):
        for process in ("namesrv", "broker", "both"):
            each = memories[process]
            aim = f"  {AIMS['memory']}" if process == "both" and title != "at the start" else ""
            print(
                f"{title + ', ' + process:<36}{each['anon']:>8}{each['file']:>8}"
                f"{each['total']:>8}{aim}"
            )


def print_lines(figures: dict[str, Any]) -> None:
    """Print metrics by name, one per line."""
    for name, value in figures.items():
        text = f"{value:,}" if isinstance(value, int | float) else str(value)
        print(f"  {name:<32}{text}")
