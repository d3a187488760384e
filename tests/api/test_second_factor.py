"""The second factor: enrolment, sign-in, replay, limits, recovery codes, reset; own sessions."""

from contextlib import suppress
from typing import Any

import pyotp
import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.accounts import password_check, second_factor
from console.accounts.models import RecoveryCode, SecondFactor, SignIn
from console.audit.models import AuditRow
from console.gateway import GatewayError
from tests.api.conftest import Api, browser

PAGE = "/accounts/security/"
LOGIN = "/accounts/login/"
CODE = f"{LOGIN}code/"
START_MS = 1_800_000_000_000
PASSWORD = {"password": "operator-password"}
pytestmark = pytest.mark.must_beat(19)


class Phone:
    """An authenticator app, and the clock of the console."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.secret, self.at_ms = "", START_MS
        for name in ("password_check", "second_factor", "sign_in"):
            monkeypatch.setattr(f"console.accounts.{name}.now_ms", lambda: self.at_ms)

    def code(self) -> str:
        return pyotp.TOTP(self.secret).at(self.at_ms // 1_000)

    def next_code(self) -> str:
        self.at_ms += 30_000
        return self.code()


@pytest.fixture
def phone(monkeypatch: pytest.MonkeyPatch) -> Phone:
    return Phone(monkeypatch)


@pytest.fixture
def enrolled(operator: User, phone: Phone) -> list[str]:
    """The operator has a second factor; returns the recovery codes."""
    phone.secret = second_factor.begin(operator).secret
    return second_factor.confirm(operator, phone.next_code())


def with_password(next_page: str = "") -> Client:
    client = Client()
    form = {"username": "operator", "password": "operator-password", "next": next_page}
    assert client.post(LOGIN, form).headers["Location"] in (CODE, f"{LOGIN}enrol/")
    return client


def is_in(client: Client) -> bool:
    return client.get(PAGE).status_code == 200


def test_the_page_enrols_with_a_picture_and_shows_recovery_codes_once(
    operator: User, phone: Phone
) -> None:
    page = browser(operator)
    assert page.post(PAGE, PASSWORD).headers["Location"] == f"{PAGE}?enrol=1"
    shown = page.get(f"{PAGE}?enrol=1")
    assert shown.headers["Cache-Control"] == "no-store"
    enrolment = shown.context["enrolment"]
    assert b'<svg class="qr"' in shown.content
    assert page.get(f"{PAGE}?enrol=1").context["enrolment"] == enrolment, "a reload shows the same"
    phone.secret = enrolment.secret
    assert page.post(PAGE, {"confirm": "1", "code": "000000"}).status_code == 422
    codes = page.post(PAGE, {"confirm": "1", "code": phone.code()}).context["codes"]
    assert len(set(codes)) == second_factor.RECOVERY_CODES
    later = page.get(PAGE).content.decode()
    assert not [code for code in codes if code in later]
    factor = SecondFactor.objects.get()
    assert phone.secret not in factor.encrypted
    digests = set(RecoveryCode.objects.values_list("digest", flat=True))
    assert not digests & set(codes)
    assert AuditRow.objects.filter(action="user.second-factor.on", result="done").count() == 1


def test_the_enrolment_asks_for_the_password_again(operator: User, phone: Phone) -> None:
    page = browser(operator)
    asked = page.get(f"{PAGE}?enrol=1")
    assert asked.context["enrolment"] is None
    assert b'autocomplete="current-password"' in asked.content
    assert not SecondFactor.objects.exists()
    wrong = page.post(PAGE, {"password": "something-else"})
    assert wrong.status_code == 422
    assert b"not the password" in wrong.content
    assert page.get(f"{PAGE}?enrol=1").context["enrolment"] is None
    phone.secret = second_factor.begin(operator).secret
    assert page.post(PAGE, {"confirm": "1", "code": phone.code()}).status_code == 409
    assert page.post(PAGE, PASSWORD).status_code == 302
    phone.at_ms += password_check.CHECKED_MS + 1
    assert page.post(PAGE, {"confirm": "1", "code": phone.code()}).status_code == 409, "too old"
    assert not second_factor.has_second_factor(operator)
    assert page.post(PAGE, PASSWORD).status_code == 302
    assert page.post(PAGE, {"confirm": "1", "code": phone.next_code()}).context["codes"]
    results = AuditRow.objects.filter(action="user.password.check").values_list("result", flat=True)
    assert sorted(results) == ["done", "done", "failed"]


def test_wrong_own_passwords_count_for_the_limit_of_the_sign_in(operator: User) -> None:
    page = browser(operator)
    answers = [
        page.post(PAGE, {"password": "something-else"}).status_code
        for _each in range(django_settings.AXES_FAILURE_LIMIT)
    ]
    assert answers[-1] == 429
    assert page.post(PAGE, PASSWORD).status_code == 429


def test_a_sign_in_needs_the_password_and_a_fresh_code(enrolled: Any, phone: Phone) -> None:
    client = with_password("/accounts/tokens/")
    assert not is_in(client), "the password alone signs nobody in"
    assert client.post(CODE, {"code": phone.code()}).status_code == 422, "used for the enrolment"
    code = phone.next_code()
    answer = client.post(CODE, {"code": f" {code[:3]} {code[3:]} "})
    assert answer.headers["Location"] == "/accounts/tokens/"
    assert is_in(client)
    again = with_password()
    assert again.post(CODE, {"code": code}).status_code == 422, "a code counts once"
    assert not is_in(again)
    assert Client().get(CODE).headers["Location"] == LOGIN


def test_a_pending_sign_in_ends(enrolled: Any, phone: Phone, operator: User) -> None:
    client = with_password()
    phone.at_ms += 5 * 60_000 + 1
    assert client.post(CODE, {"code": phone.code()}).headers["Location"] == LOGIN
    client = with_password()
    User.objects.filter(pk=operator.pk).update(is_active=False)
    assert client.post(CODE, {"code": phone.next_code()}).headers["Location"] == LOGIN


@pytest.mark.parametrize("code", ["", "1", "x" * 64, "١٢٣٤٥٦", "000000\x00", "-1", "9" * 6])
def test_a_hostile_code_is_refused(code: str, enrolled: Any, phone: Phone) -> None:
    phone.at_ms += 60_000
    client = with_password()
    assert client.post(CODE, {"code": code}).status_code == 422
    assert not is_in(client)


def test_wrong_codes_lock_the_account_for_minutes(enrolled: list[str], phone: Phone) -> None:
    client = with_password()
    for _each in range(second_factor.FAILURES_MAX):
        assert client.post(CODE, {"code": "abc"}).status_code == 422
    other = with_password()
    right = phone.next_code()
    assert other.post(CODE, {"code": right}).status_code == 429, "whatever browser asks"
    assert other.post(CODE, {"code": enrolled[0]}).status_code == 429
    phone.at_ms += second_factor.LOCK_MS
    other = with_password()
    assert other.post(CODE, {"code": phone.code()}).status_code == 302


def test_many_codes_at_once_are_not_more_attempts(
    enrolled: Any, operator: User, phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0

    def compare(*_: Any) -> bool:
        """Wrong, and the next attempt begins before the end of this one."""
        nonlocal compared
        compared += 1
        if compared < 20:
            with suppress(GatewayError):
                second_factor.check(operator, "000000")
        return False

    monkeypatch.setattr(second_factor, "_accept_step", compare)
    with pytest.raises(GatewayError):
        second_factor.check(operator, "000000")
    assert compared == second_factor.FAILURES_MAX


def test_a_recovery_code_works_once(enrolled: list[str], phone: Phone) -> None:
    client = with_password()
    assert client.post(CODE, {"code": enrolled[0].lower()}).status_code == 302
    assert is_in(client)
    row = AuditRow.objects.filter(action="user.second-factor.check", result="done").get()
    assert row.after == {"recovery_code": True}
    assert with_password().post(CODE, {"code": enrolled[0]}).status_code == 422
    new = client.post(PAGE, {"renew": "1", "code": phone.next_code()}).context["codes"]
    assert with_password().post(CODE, {"code": enrolled[1]}).status_code == 422, "replaced"
    assert with_password().post(CODE, {"code": new[0]}).status_code == 302


def test_switching_off_needs_a_code_and_administrators_reset(
    enrolled: Any, phone: Phone, operator: User, staff: User, settings: Settings
) -> None:
    page = browser(operator)
    assert page.post(PAGE, {"off": "1", "code": "000000"}).status_code == 422
    settings.SECOND_FACTOR = "required"
    assert page.post(PAGE, {"off": "1", "code": phone.next_code()}).status_code == 409
    settings.SECOND_FACTOR = "optional"
    assert page.post(PAGE, {"off": "1", "code": phone.next_code()}).status_code == 302
    assert not SecondFactor.objects.exists()
    second_factor.confirm(operator, _first_code(operator, phone))
    user_page = f"/accounts/users/{operator.pk}/"
    assert b"second-factor" in browser(staff).get(user_page).content
    browser(staff).post(user_page, {"second-factor": "1"})
    assert not second_factor.has_second_factor(operator)
    assert AuditRow.objects.filter(action="user.second-factor.reset", result="done").exists()


def _first_code(user: User, phone: Phone) -> str:
    phone.secret = second_factor.begin(user).secret
    return phone.next_code()


def test_a_required_factor_is_set_up_before_the_sign_in(
    operator: User, phone: Phone, settings: Settings
) -> None:
    settings.SECOND_FACTOR = "required"
    client = with_password()
    assert not is_in(client)
    enrol = f"{LOGIN}enrol/"
    phone.secret = client.get(enrol).context["enrolment"].secret
    assert client.post(CODE, {"code": phone.next_code()}).status_code == 422
    assert not is_in(client), "a secret that nobody has confirmed is no second factor"
    answer = client.post(enrol, {"code": phone.next_code()})
    assert len(answer.context["codes"]) == second_factor.RECOVERY_CODES
    assert is_in(client)
    stolen = with_password()
    assert stolen.get(enrol).status_code == 302, "no second enrolment with the password alone"


@pytest.mark.parametrize("has_password", [True, False])
def test_nobody_sets_up_a_factor_that_is_not_offered(
    operator: User, phone: Phone, settings: Settings, has_password: bool
) -> None:
    page = browser(operator)
    if has_password:
        settings.SECOND_FACTOR = "off"
    else:
        User.objects.filter(pk=operator.pk).update(password="!")
        page.force_login(User.objects.get(pk=operator.pk))
    page.post(PAGE, PASSWORD)
    assert page.get(f"{PAGE}?enrol=1").context["enrolment"] is None
    phone.secret = second_factor.begin(operator).secret
    assert page.post(PAGE, {"confirm": "1", "code": phone.code()}).status_code == 409
    assert not second_factor.has_second_factor(operator)


def test_tokens_need_no_code_and_classic_refuses(enrolled: Any, operator: User) -> None:
    assert Api(operator).client.get("/api/v1/whoami").status_code == 200
    form = {"username": "operator", "password": "operator-password"}
    said = Client().post("/login/login.do", form).json()
    assert said["status"] == -1
    assert "API token" in said["errMsg"]


def test_a_changed_secret_key_refuses_codes_and_keeps_recovery_off(
    enrolled: list[str], phone: Phone, settings: Settings
) -> None:
    settings.SECRET_KEY = "another-key-another-key-another-key-another-key"
    client = with_password()
    assert client.post(CODE, {"code": phone.next_code()}).status_code == 422
    assert client.post(CODE, {"code": enrolled[0]}).status_code == 422


def test_own_sessions_are_listed_and_the_others_ended(operator: User, reader: User) -> None:
    first, second, third = (browser(operator) for _each in range(3))
    foreign = browser(reader)
    assert first.get(PAGE).content.count(b'name="end" value="') == 3, "two, and all others"
    stranger = SignIn.objects.get(user=reader)
    first.post(PAGE, {"end": str(stranger.pk)})
    assert is_in(foreign), "only own sessions"
    newest = SignIn.objects.filter(user=operator).first()
    assert newest is not None
    first.post(PAGE, {"end": str(newest.pk)})
    assert [is_in(client) for client in (first, second, third)] == [True, True, False]
    for strange in ("9" * 30, "x", "-1", ""):
        assert first.post(PAGE, {"end": strange}).status_code == 302
    first.post(PAGE, {"end": "others"})
    assert [is_in(client) for client in (first, second)] == [True, False]
