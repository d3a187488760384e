"""`static/gantry/forms.js` alone: pages of a small server, so that each rule has a test.

`test_forms.py` has the same journeys with the console.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import ROOT
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
SCRIPT: Final = ROOT / "static" / "gantry" / "forms.js"
RESTORED: Final = "Your input is here again"
FORM: Final = """
<form method="post">
  <label>Name <input name="name"></label>
  <label>Version <input type="hidden" name="version" value="{version}"></label>
  <label>Password <input type="password" name="password"></label>
  <label>Address <input name="url" data-private></label>
  <label>Kind <select name="kind"><option>a<option>b</select></label>
  <label>Topics <select name="topics" multiple><option>x<option>y<option>z</select></label>
  <label>Fast <input type="checkbox" name="speed" value="fast"></label>
  <label>Slow <input type="checkbox" name="speed" value="slow"></label>
  {more}
  <button>Save</button>
</form>
"""
OTHER: Final = """
<form method="post" action="/leave"><input type="hidden" name="t"><button>Leave</button></form>
"""
SIGN_IN: Final = """
<div data-interrupted></div>
<form method="post" action="/sign-in"><button>Sign in</button></form>
"""
DRAFT: Final = "JSON.parse(sessionStorage.getItem('gantry-draft'))"


@dataclass
class Site:
    """A server with one form; `user` is empty without a session."""

    url: str = ""
    user: str = "alice"
    version: str = "1"
    more: str = ""
    posts: list[dict[str, list[str]]] = field(default_factory=list)
    #: Further presses while the first request has no answer.
    presses: int = 0
    #: Set: a saved form is not answered before.
    go_on: threading.Event = field(default_factory=threading.Event)

    def page(self, path: str) -> str:
        if path == "/forms.js":
            return SCRIPT.read_text(encoding="utf-8")
        if path == "/saved":
            body = "<p>Saved</p>"
        elif self.user:
            body = FORM.format(version=self.version, more=self.more) + OTHER
        else:
            body = SIGN_IN
        return (
            f'<!doctype html><title>t</title><body data-user="{self.user}" '
            f'data-text-restored="{RESTORED}">{body}<script src="/forms.js"></script>'
        )


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    site.go_on.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(site.page(self.path))

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if self.path == "/pressed":
                site.presses += bool(site.posts)
                self.answer("")
            elif self.path == "/sign-in":
                self.redirect("/form")
            elif not site.user:
                self.redirect("/lost")
            else:
                site.posts.append(parse_qs(text, keep_blank_values=True))
                site.go_on.wait(60)
                self.redirect("/saved")

        def answer(self, text: str) -> None:
            self.send_response(200)
            kind = "javascript" if self.path == "/forms.js" else "html"
            self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(text.encode())

        def redirect(self, path: str) -> None:
            self.send_response(303)
            self.send_header("Location", path)
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            """Write nothing to standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield site
    site.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def form(chromium: Browser, site: Site) -> Page:
    page = chromium.new_page()
    page.goto(f"{site.url}/form")
    return page


def type_all(page: Page) -> None:
    page.get_by_label("Name").fill("orders")
    page.get_by_label("Password").fill("s3cret")
    page.get_by_label("Address").fill("https://secret.example.org")
    page.get_by_label("Kind").select_option("b")
    page.get_by_label("Topics").select_option(["x", "z"])
    page.get_by_label("Slow").check()


def lose_the_session(page: Page, site: Site) -> None:
    """Save without a session: the sign-in page comes."""
    site.user = ""
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def sign_in(page: Page, site: Site, user: str = "alice") -> None:
    site.user = user
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_label("Name")).to_be_visible()


def expect_nothing_restored(page: Page) -> None:
    expect(page.get_by_label("Name")).to_have_value("")
    expect(page.get_by_text(RESTORED)).to_have_count(0)


def test_two_presses_are_one_request(form: Page, site: Site) -> None:
    site.go_on.clear()
    form.evaluate(
        """() => {
            document.forms[0].requestSubmit();
            setInterval(() => {
                document.forms[0].requestSubmit();
                navigator.sendBeacon("/pressed");
            }, 50);
        }"""
    )
    wait_until(lambda: len(site.posts) > 0 and site.presses > 2, "more presses")
    site.go_on.set()
    expect(form.get_by_text("Saved")).to_be_visible()
    assert len(site.posts) == 1


def test_a_page_from_the_browsers_cache_sends_again(form: Page, site: Site) -> None:
    form.evaluate(
        """() => {
            document.forms[0].addEventListener("submit", (event) => {
                window.sent = [...(window.sent ?? []), !event.defaultPrevented];
                event.preventDefault();
            });
            document.forms[0].requestSubmit();
        }"""
    )
    # The form's own listener runs before the document's, which then does not count the press.
    assert form.evaluate("window.sent") == [True]
    form.evaluate(
        """() => {
            const stop = (event) => {
                window.passed = [...(window.passed ?? []), !event.defaultPrevented];
                event.preventDefault();
            };
            const fresh = document.forms[0].cloneNode(true);
            document.forms[0].replaceWith(fresh);
            window.addEventListener("submit", stop);
            fresh.requestSubmit();
            fresh.requestSubmit();
            window.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
            fresh.requestSubmit();
        }"""
    )
    assert form.evaluate("window.passed") == [True, False, True]
    assert site.posts == []


def test_the_input_of_every_kind_of_field_returns(form: Page, site: Site) -> None:
    type_all(form)
    lose_the_session(form, site)
    site.version = "2"
    sign_in(form, site)
    expect(form.get_by_text(RESTORED)).to_be_visible()
    expect(form.get_by_label("Name")).to_have_value("orders")
    expect(form.get_by_label("Kind")).to_have_value("b")
    expect(form.get_by_label("Topics")).to_have_values(["x", "z"])
    expect(form.get_by_label("Slow")).to_be_checked()
    expect(form.get_by_label("Fast")).not_to_be_checked()
    # The version of the first page: the server must see that the object has changed meanwhile.
    assert form.locator("[name=version]").input_value() == "1"
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_text("Saved")).to_be_visible()
    form.goto(f"{site.url}/form")
    expect_nothing_restored(form)


def test_restored_fields_tell_the_scripts_of_the_page(form: Page, site: Site) -> None:
    site.more = """<output></output><script>
        document.forms[0].addEventListener("change", (event) => {
            document.querySelector("output").textContent += `${event.target.name} `;
        });
    </script>"""
    form.reload()
    type_all(form)
    lose_the_session(form, site)
    sign_in(form, site)
    expect(form.locator("output")).to_contain_text("kind")


def test_secrets_are_never_kept(form: Page, site: Site) -> None:
    type_all(form)
    lose_the_session(form, site)
    draft = form.evaluate(DRAFT)
    assert "s3cret" not in json.dumps(draft)
    assert "secret.example.org" not in json.dumps(draft)
    sign_in(form, site)
    expect(form.get_by_label("Name")).to_have_value("orders")
    expect(form.get_by_label("Password")).to_have_value("")
    expect(form.get_by_label("Address")).to_have_value("")


def test_the_input_of_another_user_is_dropped(form: Page, site: Site) -> None:
    type_all(form)
    lose_the_session(form, site)
    sign_in(form, site, user="bob")
    expect_nothing_restored(form)
    assert form.evaluate("sessionStorage.getItem('gantry-draft')") is None


def test_old_input_is_dropped(form: Page, site: Site) -> None:
    type_all(form)
    lose_the_session(form, site)
    form.evaluate(
        f"sessionStorage.setItem('gantry-draft', "
        f"JSON.stringify({{...{DRAFT}, at: Date.now() - 3_600_001}}))"
    )
    sign_in(form, site)
    expect_nothing_restored(form)


def test_input_returns_to_its_page_only(form: Page, site: Site) -> None:
    type_all(form)
    lose_the_session(form, site)
    site.user = "alice"
    form.goto(f"{site.url}/form?of=another")
    expect_nothing_restored(form)
    form.goto(f"{site.url}/form")
    expect(form.get_by_label("Name")).to_have_value("orders")
    form.reload()
    expect_nothing_restored(form)


def test_a_form_with_other_fields_stays_empty(form: Page, site: Site) -> None:
    type_all(form)
    lose_the_session(form, site)
    site.more = '<input name="new">'
    sign_in(form, site)
    expect_nothing_restored(form)


def test_input_without_a_save_survives_a_script_that_leads_to_the_sign_in(
    form: Page, site: Site
) -> None:
    type_all(form)
    site.user = ""
    form.evaluate("location.assign('/lost')")
    expect(form.get_by_role("button", name="Sign in")).to_be_visible()
    sign_in(form, site)
    expect(form.get_by_label("Name")).to_have_value("orders")


def test_saved_input_is_not_kept_as_unsaved(form: Page, site: Site) -> None:
    """The pagehide of the navigation to the next page comes after the submit."""
    type_all(form)
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_text("Saved")).to_be_visible()
    site.user = ""
    form.goto(f"{site.url}/lost")
    sign_in(form, site)
    expect_nothing_restored(form)


def test_input_of_scripts_is_no_unsaved_input(form: Page, site: Site) -> None:
    form.evaluate(
        """() => {
            const field = document.forms[0].elements.name;
            field.value = "by a script";
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    site.user = ""
    form.evaluate("location.assign('/lost')")
    expect(form.get_by_role("button", name="Sign in")).to_be_visible()
    sign_in(form, site)
    expect_nothing_restored(form)


def test_a_form_of_buttons_keeps_nothing(form: Page, site: Site) -> None:
    site.user = ""
    form.get_by_role("button", name="Leave").click()
    expect(form.get_by_role("button", name="Sign in")).to_be_visible()
    assert form.evaluate("sessionStorage.getItem('gantry-draft')") is None
