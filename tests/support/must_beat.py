"""`make must-beat`: results of the tests for each item where the console must beat other consoles.

A test names its item by `@pytest.mark.must_beat(4)`. An item passes when all tests of the item
pass; an item without tests does not pass.
"""

from collections import defaultdict

import pytest

TITLES = {
    1: "every client of both protocols, with version, language, groups, heartbeat; no -1",
    2: "groups paged, sorted and searched on the server, in a stable order",
    3: "dead letters by group: count, newest, oldest, growth",
    4: "resend with one outcome per message; edit body, tag, properties, target",
    5: "replay jobs: filter, dry run, rate limit, pause, resume, live progress",
    6: "messages newest first by cursor: exact totals, none twice, none missing",
    7: "one box finds a message by any id, key or queue offset",
    8: "live tail: pause, filter, rate cap, count of what was dropped",
    10: "offset reset six ways: preview, per queue, offline groups, check afterwards",
    13: "a message's journey: each attempt, retries, dead letter, transaction checks",
    14: "an empty trace is explained: off at client, off at broker, expired, failed",
    21: "the cluster is in the address: two tabs, two clusters",
    22: "topics with rates, counts, groups, lag, last write; counted type chips",
    23: "topics and groups edited per broker: drift, diff, dry run, conflict check",
    24: "deletes guarded: impact, typed name, protection, warning for dead letters",
    25: "produce every type of message, and send again",
    26: "bulk acts with a result per item",
    28: "OpenAPI 3, try-it page, true status codes, problem+json",
    29: "/metrics, Grafana boards, /livez, /readyz with the failed check",
    33: "bodies as JSON, text, hex, Base64; raw download is what was sent",
    35: "every view can be shared by its address; recent items",
    36: "messages and tables exported as jobs, with cap and permission",
    37: "broker configuration compared, edited from an allow-list, undone",
    38: "time zone with milliseconds, two languages, palette, accessibility",
    39: "below a sub-path, SQLite or PostgreSQL, restart-safe",
}
PROPERTY = "must_beat"
#: Outcomes by rising strength: the strongest outcome of a test's phases is the test's outcome.
STRENGTH = ("pass", "skipped", "FAIL")


class MustBeat:
    """Collects the outcomes of marked tests, also from xdist workers, and prints a summary."""

    def __init__(self) -> None:
        self.tests: dict[int, dict[str, str]] = defaultdict(dict)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers(PROPERTY):
                (number,) = mark.args
                if number not in TITLES:
                    raise pytest.UsageError(f"{item.nodeid}: must_beat({number}) has no title")
                item.user_properties.append((PROPERTY, number))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = {"passed": "pass", "skipped": "skipped"}.get(report.outcome, "FAIL")
        for name, number in report.user_properties:
            if name == PROPERTY:
                outcomes = self.tests[int(str(number))]
                previous = outcomes.get(report.nodeid, "pass")
                outcomes[report.nodeid] = max(previous, outcome, key=STRENGTH.index)

    def outcome(self, number: int) -> str:
        """The outcome of one item: pass only with at least one test and without failures."""
        outcomes = self.tests.get(number, {}).values()
        return max(outcomes, key=STRENGTH.index, default="no test")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        say = terminalreporter
        say.section("must beat")
        for number, title in TITLES.items():
            outcome, tests = self.outcome(number), len(self.tests.get(number, {}))
            count = f"{tests} test{'' if tests == 1 else 's'}"
            colour = {"green" if outcome == "pass" else "red": True}
            say.write_line(f"{number:3} {outcome:8} {count:9} {title}", **colour)
        passed = sum(self.outcome(number) == "pass" for number in TITLES)
        say.write_line(f"{passed} of {len(TITLES)} pass")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        is_worker = hasattr(session.config, "workerinput")
        if not is_worker and session.exitstatus == pytest.ExitCode.OK:
            missing = [number for number in TITLES if self.outcome(number) != "pass"]
            session.exitstatus = pytest.ExitCode.TESTS_FAILED if missing else pytest.ExitCode.OK


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(MustBeat(), "must-beat-items")
