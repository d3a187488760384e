"""A second run of failed tests with real browsers and foreign programs; no other test runs twice.

Such programs fail now and then on a busy machine, for reasons outside of Gantry. A test below one
of FOLDERS that fails runs once more, in the same worker. A second failure is a failure. A test that
passes on the second run passes, and the summary lists the test with the first run's error.
"""

from collections.abc import Iterator

import pytest
import pytest_timeout  # type: ignore[import-untyped]

FOLDERS = ("tests/browser/", "tests/up/", "tests/compat/")
#: Maximum length of an error in the summary, characters.
ERROR_CHARS_MAX = 200


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests for pytest-rerunfailures, which refuses to run beside a debugger."""
    if config.getoption("usepdb"):
        return
    for item in items:
        if item.nodeid.startswith(FOLDERS):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start the timeout again, since pytest-timeout has one timer for both runs."""
    settings = pytest_timeout._get_item_settings(item)
    if getattr(item, "execution_count", 1) > 1 and settings.timeout:
        item.config.hook.pytest_timeout_cancel_timer(item=item)
        item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [*summary_lines(terminalreporter.stats)]
    if lines:
        terminalreporter.section("passed on the second run")
        for line in lines:
            terminalreporter.line(line)


def summary_lines(reports: dict[str, list[pytest.TestReport]]) -> Iterator[str]:
    """The tests of the outcome "rerun" without a failure, with the error of the first run."""
    failed = {each.nodeid for outcome in ("failed", "error") for each in reports.get(outcome, ())}
    for report in reports.get("rerun", ()):
        if report.nodeid not in failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            error = str(crash.message if crash else report.longrepr).strip().partition("\n")[0]
            yield f"{report.nodeid} ({report.when}: {error[:ERROR_CHARS_MAX]})"
