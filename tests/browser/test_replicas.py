"""The page of replicas in a browser, with three real replicas and a controller."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Gantry, signed_in
from tests.browser.consoles import running_console
from tests.browser.test_every_page import CONTRAST, serious
from tests.browser.waiting import wait_until_fits
from tests.support.replica_set import BROKER_NAME, ReplicaSet

PHONE = {"width": 390, "height": 844}


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Gantry]:
    """A console beside three replicas."""
    with ReplicaSet(tmp_path) as replicas:
        for replica in replicas.replicas:
            replica.start()
        home = tmp_path / "console"
        with running_console(home, replicas.namesrv_addr) as console:
            yield console


@pytest.fixture
def page(trio: Gantry, chromium: Browser, tmp_path: Path) -> Iterator[Page]:
    with signed_in(trio, chromium, tmp_path / "replicas.png") as page:
        yield page


@pytest.mark.timeout(300)
def test_an_operator_elects_another_master(page: Page, trio: Gantry) -> None:
    page.goto(trio.page("replicas/"))
    found = page.locator(f'[data-set="{BROKER_NAME}"]')
    slaves = found.locator('tr[data-role="slave"]')
    expect(slaves).to_have_count(2)
    expect(found.get_by_text("yes", exact=True)).to_have_count(3)
    expect(page.locator('[data-controllers="leader"]')).to_be_visible()
    number = slaves.first.get_attribute("data-replica")
    before = int(found.get_attribute("data-epoch") or 0)
    slaves.first.get_by_role("link", name="Elect master").click()

    expect(page.get_by_text(f"Make replica {number} the master")).to_be_visible()
    elect = page.get_by_role("button", name="Elect master")
    elect.click()
    expect(page.get_by_text("This is not the name")).to_be_visible()
    page.get_by_label("Type the name to confirm").fill(BROKER_NAME)
    elect.click()
    expect(page.get_by_text(f"The master of “{BROKER_NAME}” is")).to_be_visible()
    expect(found).to_have_attribute("data-master", number or "")
    expect(found).to_have_attribute("data-epoch", str(before + 1))
    # The part of the page that renews itself has the new roles without a reload.
    expect(found.locator('tr[data-role="master"]')).to_have_attribute("data-replica", number or "")
    expect(found.get_by_text("yes", exact=True)).to_have_count(3)

    page.emulate_media(reduced_motion="reduce")
    axe = Axe()
    for path in ("replicas/", f"replicas/{BROKER_NAME}/"):
        page.goto(trio.page(path))
        problems = serious(axe.run(page), f"{path} (light)")
        page.emulate_media(color_scheme="dark")
        problems += serious(axe.run(page, options=CONTRAST), f"{path} (dark)")
        page.emulate_media(color_scheme="light")
        assert not problems, "\n".join(problems)
        page.set_viewport_size(PHONE)
        wait_until_fits(page)
        page.set_viewport_size({"width": 1440, "height": 900})
