"""Must-beat items: what the console must do better than others, and whether its checks pass.

Clients of RocketMQ 5's gRPC protocol (item 1) need a proxy, which Gantry does not have yet.
A test names the item that the test checks: `@pytest.mark.must_beat(4)`. An item passes when it has
tests and all of them pass. `make must-beat` (`--must-beat`) runs only these tests and fails when an
item does not pass; a run of the whole suite prints the same summary at its end.
"""

from collections import defaultdict

import pytest

TITLES = {
    1: "every client with version, language, groups, heartbeat; no -1; gRPC waits for the proxy",
    2: "groups paged, sorted and searched on the server, in a stable order",
    3: "dead letters by group: count, newest, oldest, growth",
    4: "resend with one outcome per message; edit body, tag, properties, target",
    5: "replay jobs: filter, dry run, rate limit, pause, resume, live progress",
    6: "messages newest first by cursor: exact totals, none twice, none missing",
    7: "one box finds a message by any id, key or queue offset",
    8: "live tail: pause, filter, rate cap, count of what was dropped",
    9: "filters by tag, SQL92 and body: test the expression, progress, continue",
    10: "offset reset six ways: preview, per queue, offline groups, check afterwards",
    11: "history of rates and lag by topic and group, 15 minutes to 30 days, over restarts",
    12: "alarms on metrics and findings: webhook, mail, chat robots, test, silence, resolve notice",
    13: "a message's journey: each attempt, retries, dead letter, transaction checks",
    14: "an empty trace is explained: off at client, off at broker, expired, failed",
    15: "analytics from Spark: produce-to-consume p50, p95, p99 by topic and group",
    16: "roles: resource, action, names, cluster; deny by default on every route",
    17: "no answer holds a secret; a secret is shown once",
    18: "every write and every refusal in the audit list, never edited",
    19: "API tokens: scoped, expiring, revocable; throttled sign-in; list of sessions",
    20: "a cluster is read-only on the server, with a banner",
    21: "the cluster is in the address: two tabs, two clusters",
    22: "topics with rates, counts, groups, lag, last write; counted type chips",
    23: "topics and groups edited per broker: drift, diff, dry run, conflict check",
    24: "deletes guarded: impact, typed name, protection, warning for dead letters",
    25: "produce every type of message, and send again",
    26: "bulk acts with a result per item",
    27: "definitions as YAML with diff and dry run; export, wipe, import, export are identical",
    28: "OpenAPI 3, try-it page, true status codes, problem+json",
    29: "/metrics, Grafana boards, /livez, /readyz with the failed check",
    30: "delayed messages by due time, search, why none can be cancelled",
    31: "half messages: age, checks, producer group, new checks, discarded ones",
    32: "a group diagnosed: conflicts, idle clients, stuck queues, slow members, thread stacks",
    33: "bodies as JSON, text, hex, Base64; raw download is what was sent",
    34: "fields masked by role on the server: list, detail, tail, search, export, audit",
    35: "every view can be shared by its address; recent items",
    36: "messages and tables exported as jobs, with cap and permission",
    37: "broker configuration compared, edited from an allow-list, undone",
    38: "time zone with milliseconds, two languages, palette, accessibility",
    39: "below a sub-path, SQLite or PostgreSQL, restart-safe",
    40: "health report with every seeded fault as a finding; debug bundle without secrets",
}
PROPERTY = "must_beat"
#: Outcomes in ascending order: the highest among a test's phases, or an item's tests, counts.
OUTCOMES = ("pass", "skipped", "FAIL")


class MustBeat:
    """Collects the outcomes of marked tests, also from xdist workers, and prints them by item.

    `is_required` turns an item without a passing test into a failure of the run.
    """

    def __init__(self, *, is_required: bool = False) -> None:
        self.is_required = is_required
        self.tests: dict[int, dict[str, str]] = defaultdict(dict)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers(PROPERTY):
                (number,) = mark.args
                if number not in TITLES:
                    raise pytest.UsageError(f"{item.nodeid}: must_beat({number}) has no title")
                item.user_properties.append((PROPERTY, number))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == "rerun":  # the second run counts
            return
        outcome = {"passed": "pass", "skipped": "skipped"}.get(report.outcome, "FAIL")
        for name, number in report.user_properties:
            if name == PROPERTY:
                outcomes = self.tests[int(str(number))]
                before = outcomes.get(report.nodeid, "pass")
                outcomes[report.nodeid] = max(before, outcome, key=OUTCOMES.index)

    def outcome(self, number: int) -> str:
        """The outcome of one item, or "no test"."""
        outcomes = self.tests.get(number, {}).values()
        return max(outcomes, key=OUTCOMES.index, default="no test")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.is_required and set(self.tests) != set(TITLES):
            return  # part of the suite ran, and the items without tests would say nothing
        write = terminalreporter
        write.section("must beat")
        for number, title in TITLES.items():
            outcome, tests = self.outcome(number), len(self.tests.get(number, {}))
            count = f"{tests} test{'' if tests == 1 else 's'}"
            colour = {"green" if outcome == "pass" else "red": True}
            write.write_line(f"{number:3} {outcome:8} {count:9} {title}", **colour)
        passed = sum(self.outcome(number) == "pass" for number in TITLES)
        write.write_line(f"{passed} of {len(TITLES)} items pass")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        is_worker = hasattr(session.config, "workerinput")
        if self.is_required and not is_worker and session.exitstatus == pytest.ExitCode.OK:
            missing = [number for number in TITLES if self.outcome(number) != "pass"]
            session.exitstatus = pytest.ExitCode.TESTS_FAILED if missing else pytest.ExitCode.OK


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--must-beat", action="store_true", help="fail when a must-beat item has no passing test"
    )


def pytest_configure(config: pytest.Config) -> None:
    required = bool(config.getoption("--must-beat"))
    config.pluginmanager.register(MustBeat(is_required=required), "must-beat-items")
