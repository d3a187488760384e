"""Summary of a test run per foreign client: outcomes, skips and their reasons.

The summary is a plugin, because the process that prints reads only the top conftest files.
"""

from collections import Counter

import pytest

from tests.compat.kinds import FEATURES, KINDS, TITLES

OUTCOMES = ("passed", "failed", "error", "skipped")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the lines if tests of foreign clients were collected."""
    counts: dict[str, Counter[str]] = {client: Counter() for client in TITLES}
    reasons: dict[str, str] = {}
    for outcome in OUTCOMES:
        for report in terminalreporter.stats.get(outcome, []):
            # Reports of a failed collection have no properties.
            client = dict(getattr(report, "user_properties", ())).get("client")
            if client in counts and "tests/compat/" in report.nodeid:
                counts[client][outcome] += 1
                if outcome == "skipped":
                    reasons[client] = report.longrepr[2].rpartition(f"{TITLES[client]}: ")[2]
    if not any(counts.values()):
        return
    terminalreporter.section("foreign clients")
    for client, title in TITLES.items():
        counted = ", ".join(f"{n} {outcome}" for outcome, n in counts[client].items()) or "not run"
        why = f" ({reasons[client]})" if client in reasons else ""
        lacks = KINDS[client].lacks if client in KINDS else frozenset()
        missing = ", ".join(feature for feature in FEATURES if feature in lacks)
        without = f"; has no {missing}" if missing else ""
        terminalreporter.line(f"{title}: {counted}{why}{without}")
