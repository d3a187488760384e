"""Access control, WebSocket origins, and templates without inline code."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import override_settings

from console.frame.access import Need, Role, may, need_of, needs
from console.frame.permissions import Target
from console.web.security import is_own_origin

CONSOLE = Path(__file__).resolve().parents[3] / "console"


def user(role: Role | None = None, *, active: bool = True, **more: object) -> SimpleNamespace:
    account = SimpleNamespace(is_authenticated=True, is_active=active, **more)
    if role is not None:
        account.profile = SimpleNamespace(role=role.value)
    return account


READS = {Need.OPEN, Need.SIGNED_IN, Need.READ}
WRITES = {*READS, Need.WRITE}


@pytest.mark.parametrize(
    ("who", "allowed"),
    [
        (None, {Need.OPEN}),
        (AnonymousUser(), {Need.OPEN}),
        (user(), READS),
        (user(Role.NONE), {Need.OPEN, Need.SIGNED_IN}),
        (user(Role.VIEWER), READS),
        (user(Role.OPERATOR), WRITES),
        (user(Role.ADMINISTRATOR), {*Need}),
        (user(Role.ADMINISTRATOR, active=False), {Need.OPEN}),
        (user(Role.ADMINISTRATOR, token_role=Role.VIEWER), READS),
        (user(Role.VIEWER, token_role=Role.ADMINISTRATOR), READS),
        (user(Role.VIEWER, is_staff=True, is_superuser=True), READS),
    ],
)
def test_who_may_do_what(who: object, allowed: set[Need]) -> None:
    assert {need for need in Need if may(who, need, Target("topics"))} == allowed


@pytest.mark.parametrize(
    ("method", "need"),
    [
        ("GET", Need.READ),
        ("HEAD", Need.READ),
        ("OPTIONS", Need.READ),
        ("POST", Need.WRITE),
        ("DELETE", Need.WRITE),
        ("BREW", Need.WRITE),
        (None, Need.WRITE),
    ],
)
def test_a_view_that_says_nothing_is_not_open(method: str | None, need: Need) -> None:
    assert need_of(lambda: None, method) is need


def test_a_view_may_say_what_it_needs() -> None:
    @needs(Need.WRITE)
    def form() -> None: ...

    assert need_of(form, "GET") is Need.WRITE


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        ("", "h:1", True),
        ("http://h:1", "h:1", True),
        ("https://H:1", "h:1", True),
        ("http://h:2", "h:1", False),
        ("http://h:1.evil.example", "h:1", False),
        ("http://evil.example", "h:1", False),
        ("null", "h:1", False),
        ("file://h:1", "h:1", False),
        ("https://console.example.org", "10.0.0.1:8082", True),
    ],
)
def test_sockets_are_let_in_from_our_own_pages_only(origin: str, host: str, own: bool) -> None:
    with override_settings(CSRF_TRUSTED_ORIGINS=["https://console.example.org"]):
        assert is_own_origin(origin, host) is own


def test_templates_hold_no_inline_code_and_nothing_from_elsewhere() -> None:
    banned = re.compile(
        r"<script(?![^>]*\bsrc=)|<style\b|\sstyle=[\"']|\son[a-z]+=[\"']|javascript:"
        r"|(?:src|href)=[\"']?(?:https?:)?//",
        re.IGNORECASE,
    )
    offenders = [
        f"{path.relative_to(CONSOLE)}: {match.group()}"
        for path in CONSOLE.rglob("*.html")
        for match in [banned.search(path.read_text(encoding="utf-8"))]
        if match
    ]
    assert not offenders


def test_templates_never_mark_text_as_safe() -> None:
    offenders = [
        str(path.relative_to(CONSOLE))
        for path in CONSOLE.rglob("*.html")
        if re.search(r"\|\s*safe\b|autoescape\s+off", path.read_text(encoding="utf-8"))
    ]
    assert not offenders
