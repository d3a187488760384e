"""Input survives the end of a session, and two clicks are one request."""

import uuid

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PASSWORD, Gantry

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
RESTORED = "Your input is here again"


def type_a_rule(page: Page, name: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Metric").select_option("group.lag")
    page.get_by_label("Threshold").fill("12.5")
    page.get_by_label("Fires after, seconds").fill("7")
    page.get_by_label("Enabled").check()


def expect_the_rule(page: Page, name: str) -> None:
    expect(page.get_by_text(RESTORED)).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value(name)
    expect(page.get_by_label("Metric")).to_have_value("group.lag")
    expect(page.get_by_label("Threshold")).to_have_value("12.5")
    expect(page.get_by_label("Fires after, seconds")).to_have_value("7")
    expect(page.get_by_label("Enabled")).to_be_checked()


def sign_in_again(page: Page) -> None:
    page.get_by_label("User").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_a_session_that_ends_while_typing_loses_nothing(page: Page, gantry: Gantry) -> None:
    name = f"typed {uuid.uuid4().hex[:8]}"
    page.goto(gantry.page("alarms/rules/create/"))
    type_a_rule(page, name)
    page.context.clear_cookies(name="gantry_session")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in_again(page)
    expect_the_rule(page, name)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name=name)).to_be_visible()
    page.goto(gantry.page("alarms/rules/create/"))
    expect(page.get_by_text(RESTORED)).to_have_count(0)
    expect(page.get_by_label("Name")).to_have_value("")


def test_kept_input_overwrites_no_later_change(page: Page, gantry: Gantry) -> None:
    name = f"typed {uuid.uuid4().hex[:8]}"
    page.goto(gantry.page("alarms/rules/create/"))
    type_a_rule(page, name)
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name=name).click()
    page.get_by_label("Threshold").fill("20.5")
    page.context.clear_cookies(name="gantry_session")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.context.browser is not None
    with page.context.browser.new_context() as others:
        other = others.new_page()
        other.goto(gantry.page("alarms/rules/"))
        sign_in_again(other)
        other.get_by_role("link", name=name).click()
        other.get_by_label("Threshold").fill("30.5")
        other.get_by_role("button", name="Save").click()
        expect(other.get_by_role("link", name=name)).to_be_visible()
    sign_in_again(page)
    expect(page.get_by_text(RESTORED)).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Somebody else has changed this")).to_be_visible()
    expect(page.get_by_label("Threshold")).to_have_value("20.5")


def test_input_goes_into_no_other_form(page: Page, gantry: Gantry) -> None:
    page.goto(gantry.page("alarms/rules/create/"))
    type_a_rule(page, "other")
    page.context.clear_cookies(name="gantry_session")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    # As if the page had another form at this place by now.
    page.evaluate(
        """() => {
            const draft = JSON.parse(sessionStorage.getItem("gantry-draft"));
            const fields = draft.fields.filter(([name]) => name !== "threshold");
            const signature = fields.map(([name]) => name).sort().join();
            sessionStorage.setItem("gantry-draft", JSON.stringify({...draft, fields, signature}));
        }"""
    )
    sign_in_again(page)
    expect(page.get_by_role("button", name="Save")).to_be_visible()
    expect(page.get_by_text(RESTORED)).to_have_count(0)
    expect(page.get_by_label("Name")).to_have_value("")


def test_a_sign_out_is_no_lost_input(page: Page, gantry: Gantry) -> None:
    page.goto(gantry.page("topics/"))
    page.locator("form[action$='/logout/']").evaluate("form => form.requestSubmit()")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('gantry-draft')") is None


def test_a_live_part_that_finds_the_end_of_the_session(page: Page, gantry: Gantry) -> None:
    reason = f"moving {uuid.uuid4().hex[:8]}"
    page.goto(gantry.page("alarms/silences/"))
    page.get_by_label("Duration").select_option("86400")
    page.get_by_label("Reason").fill(reason)
    page.context.clear_cookies(name="gantry_session")
    page.locator("#rows").dispatch_event("part-changed")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in_again(page)
    expect(page.get_by_text(RESTORED)).to_be_visible()
    expect(page.get_by_label("Reason")).to_have_value(reason)
    expect(page.get_by_label("Duration")).to_have_value("86400")


def test_a_form_from_before_a_sign_in_in_another_tab(page: Page, gantry: Gantry) -> None:
    name = f"typed {uuid.uuid4().hex[:8]}"
    page.goto(gantry.page("alarms/rules/create/"))
    type_a_rule(page, name)
    other = page.context.new_page()
    page.context.clear_cookies(name="gantry_session")
    other.goto(gantry.page("topics/"))
    sign_in_again(other)
    expect(other.get_by_role("heading", name="Topics")).to_be_visible()
    other.close()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Back to the form").click()
    expect_the_rule(page, name)


def test_two_clicks_create_one_token(page: Page, gantry: Gantry) -> None:
    name = f"token {uuid.uuid4().hex[:8]}"
    page.goto(f"{gantry.url}/accounts/tokens/")
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create token").dblclick()
    expect(page.locator("code.token")).to_be_visible()
    expect(page.locator("tbody tr", has_text=name)).to_have_count(1)
    row = page.locator("tbody tr", has_text=name)
    row.get_by_role("link", name="Revoke").click()
    expect(page.locator("#confirmation")).to_contain_text(f"Revoke the token “{name}”?")
    page.locator("#confirmation").get_by_role("button", name="Revoke").click()
    expect(page.locator("tbody tr", has_text=name)).to_have_count(0)
