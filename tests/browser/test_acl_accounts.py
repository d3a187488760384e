"""Accounts of ACL 1.0 in a browser: tab, creation, secret key, preview, undo, white list."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import Gantry, signed_in
from tests.browser.consoles import running_console
from tests.browser.waiting import wait_until_fits
from tests.support.accounts_cluster import ADMINISTRATOR, accounts_cluster

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300), pytest.mark.must_beat(39)]

#: Generous: the pages ask a real broker on a busy machine.
WAIT_MS = 60_000
#: The width of a phone, CSS pixels.
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gantry]:
    """A console of a cluster with accounts, which signs its requests as the administrator."""
    folder = tmp_path_factory.mktemp("accounts")
    keys = folder / "keys.yml"
    keys.write_text(
        f"accessKey: {ADMINISTRATOR.access_key}\nsecretKey: {ADMINISTRATOR.secret_key}\n"
    )
    signed = {"CONSOLE_CLUSTER_CREDENTIALS": f"local={keys}"}
    with (
        accounts_cluster(folder) as cluster,
        running_console(folder / "console", cluster.namesrv_addr, **signed) as console,
    ):
        yield console


@pytest.fixture
def page(console: Gantry, chromium: Browser, tmp_path: Path) -> Iterator[Page]:
    with signed_in(console, chromium, tmp_path / "accounts.png") as page:
        page.set_default_timeout(WAIT_MS)
        yield page


def test_an_account_is_created_changed_and_restored(console: Gantry, page: Page) -> None:
    page.get_by_role("link", name="Access control").click()
    page.get_by_role("link", name="Accounts and white list (ACL 1.0)").click()
    expect(page.get_by_role("link", name=ADMINISTRATOR.access_key, exact=True)).to_be_visible(
        timeout=WAIT_MS
    )

    page.get_by_role("link", name="Create account").click()
    page.get_by_label("Access key").fill("billing-1")
    page.get_by_label("Permissions of topics").fill("orders=PUB|SUB")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_text("is shown only now")).to_be_visible(timeout=WAIT_MS)
    secret_key = page.locator("dt:text('secretKey') + dd").inner_text().split()[0]
    assert len(secret_key) == 32
    page.get_by_role("link", name="Continue").click()
    expect(page.get_by_role("row", name="Topic:orders")).to_contain_text("PUB|SUB", timeout=WAIT_MS)
    assert secret_key not in page.content()

    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Permissions of topics").fill("orders=SUB")
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_role("heading", name="Changes", exact=True)).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="Topic:orders")).not_to_contain_text(
        "PUB|SUB", timeout=WAIT_MS
    )
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("row", name="Topic:orders")).to_contain_text("PUB|SUB", timeout=WAIT_MS)

    page.set_viewport_size(PHONE)
    page.goto(console.page("acl-accounts/"))
    page.get_by_role("link", name="Edit white list").click()
    page.get_by_label("Global white list").fill("10.99.99.99\n10.0.0.5-20")
    page.get_by_role("button", name="Preview changes").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("10.0.0.5-20").first).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="Undo").first.click()
    expect(page.locator("td.mono").get_by_text("10.0.0.5-20")).to_have_count(0, timeout=WAIT_MS)
    wait_until_fits(page)
