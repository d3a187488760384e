"""The alarm drill: a consumer stops, its lag rises, a webhook is notified once, and once again at
the end; the worker and the console are killed in between.
"""

import re
import uuid
from collections.abc import Iterator

import psutil
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Gantry
from tests.browser.traffic import Traffic
from tests.browser.waiting import wait_until, wait_until_fits
from tests.support.processes import command_line
from tests.support.webhooks import Hook, webhook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.must_beat(12)]
#: A sample every 10 s, an evaluation every 3 s, and programs that start again.
SOON_S = 180
SOON_MS = SOON_S * 1000


@pytest.fixture
def hook() -> Iterator[Hook]:
    with webhook() as found:
        yield found


def test_one_firing_and_one_resolved_notice_over_a_restart(
    page: Page, gantry: Gantry, hook: Hook
) -> None:
    topic = f"drill-{uuid.uuid4().hex[:8]}"
    group, rule, quiet = f"{topic}-billing", f"lag of {topic}", f"quiet {topic}"
    create_receiver(page, gantry, f"hook of {topic}", hook)
    create_rule(page, gantry, rule, group)
    create_rule(page, gantry, quiet, group)
    silence(page, gantry, quiet, group)

    # The group consumes, then leaves; the messages stay.
    with Traffic(gantry.namesrv_addr, topic, group) as traffic:
        traffic.accepting.set()
        wait_until(lambda: bool(traffic.accepted), "the group to consume")
    with Traffic(gantry.namesrv_addr, topic, f"{group}-other") as traffic:
        for number in range(20):
            traffic.send(b"x", f"k{number}")

    wait_until(lambda: bool(hook.events(rule)), "the firing notice", SOON_S)
    (firing,) = [each for each in hook.notices if each["rule"] == rule]
    assert (firing["event"], firing["alarms"][0]["object"]["name"]) == ("firing", group)

    # The overview, the group's page with its finding and chart, the list of alarms.
    page.goto(gantry.page())
    expect(page.locator("#alarms-firing")).to_contain_text(group, timeout=SOON_MS)
    page.goto(gantry.page(f"groups/{group}/?range=15m"))
    expect(page.locator("#object-alarms")).to_contain_text(rule)
    expect(page.locator("#object-findings")).to_contain_text(
        "No client is connected", timeout=SOON_MS
    )
    expect(page.locator("#history-lag")).to_have_attribute(
        "data-points", re.compile(r"^[1-9]\d*$"), timeout=SOON_MS
    )
    page.goto(gantry.page(f"alarms/?q={topic}"))
    # The default rules may have alarms of the group, too.
    expect_states(page, rule, "firing")
    expect_states(page, quiet, "silenced")
    page.set_viewport_size({"width": 390, "height": 800})
    wait_until_fits(page)
    page.set_viewport_size({"width": 1440, "height": 900})

    kill(gantry, "worker")
    kill(gantry, "uvicorn")
    with Traffic(gantry.namesrv_addr, topic, group) as traffic:
        traffic.accepting.set()
        wait_until(lambda: "resolved" in hook.events(rule), "the resolved notice", SOON_S)
    assert hook.events(rule) == ["firing", "resolved"]
    assert hook.events(quiet) == [], "silenced"

    wait_until(lambda: is_served(page, gantry, topic), "the history after the restart", SOON_S)
    expect_states(page, rule, "resolved")
    expect_states(page, quiet, "resolved")
    page.locator("tr", has_text=rule).get_by_role("link", name=group).click()
    expect(page.locator('tr[data-delivery="firing"][data-state="sent"]')).to_have_count(1)
    expect(page.locator('tr[data-delivery="resolved"][data-state="sent"]')).to_have_count(1)


def expect_states(page: Page, rule: str, state: str) -> None:
    """Wait until the list has exactly one alarm of a rule, in this state."""
    rows = page.locator("tr[data-state]", has_text=rule)
    expect(rows.and_(page.locator(f'[data-state="{state}"]'))).to_have_count(1, timeout=SOON_MS)
    expect(rows).to_have_count(1)


def create_receiver(page: Page, gantry: Gantry, name: str, hook: Hook) -> None:
    page.goto(gantry.page("alarms/receivers/create/"))
    page.get_by_label("Name").fill(name)
    page.get_by_label("URL").fill(hook.url)
    page.get_by_label("Secret", exact=True).fill("drill")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Send a test notice").click()
    expect(page.locator("#outcome")).to_have_attribute("data-result", "sent")
    assert hook.events() == ["test"]


def create_rule(
    page: Page,
    gantry: Gantry,
    name: str,
    group: str,
    metric: str = "group.lag",
    threshold: str = "10",
) -> None:
    page.goto(gantry.page("alarms/rules/create/"))
    page.get_by_label("Name").fill(name)
    page.get_by_label("Metric").select_option(metric)
    page.get_by_label("Threshold").fill(threshold)
    page.get_by_label("Objects").fill(group)
    page.get_by_label("Fires after, seconds").fill("0")
    page.get_by_label("Resolves after, seconds").fill("0")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name=name)).to_be_visible()


def silence(page: Page, gantry: Gantry, rule: str, group: str) -> None:
    page.goto(gantry.page("alarms/silences/"))
    page.get_by_label("Rule").select_option(label=rule)
    page.get_by_label("Objects").fill(group)
    page.get_by_label("Reason").fill("drill")
    page.get_by_role("button", name="Silence").click()
    expect(page.locator("tr[data-silence]", has_text=rule)).to_be_visible()


def kill(gantry: Gantry, word: str) -> None:
    """Kill the program with a word in its command line; the launcher starts it again."""
    programs = psutil.Process(gantry.pid).children()
    (program,) = [each for each in programs if word in command_line(each)]
    program.kill()
    wait_until(lambda: not is_running(program), f"the end of {word}")


def is_running(program: psutil.Process) -> bool:
    return program.is_running() and program.status() != psutil.STATUS_ZOMBIE


def is_served(page: Page, gantry: Gantry, topic: str) -> bool:
    """Return whether the console answers again; opens the history of the alarms."""
    try:
        answer = page.goto(gantry.page(f"alarms/?q={topic}&state=resolved"))
    except Exception as error:
        if "ERR_CONNECTION" not in str(error):
            raise
        return False
    return answer is not None and answer.ok
