"""Limits of passwords that are hashed at the same time."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password, make_password
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.accounts.hashing import HASHES_MAX, HASHES_WAITING_MAX
from console.gateway import Busy

DEADLINE_S = 90.0
REFUSED = 10
FORM = {"username": "staff", "password": "staff-password"}


class Hashes:
    """Holds all hashes until `finish` is set; counts the hashes at a time."""

    def __init__(self) -> None:
        self.finish = threading.Event()
        self.running = self.running_max = 0
        self._lock = threading.Lock()

    def encode(self, *_: Any) -> str:
        with self._lock:
            self.running += 1
            self.running_max = max(self.running, self.running_max)
        assert self.finish.wait(DEADLINE_S)
        with self._lock:
            self.running -= 1
        return "pbkdf2_sha256$1$salt$hash"


@pytest.fixture
def hashes(staff: User, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hashes]:
    """All turns are taken: two hashes run, the others wait; REFUSED more are refused."""
    settings.PASSWORD_HASHERS = ["console.accounts.hashing.LimitedHasher"]
    held = Hashes()
    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", held.encode)
    count = HASHES_MAX + HASHES_WAITING_MAX
    refused = threading.Semaphore(0)

    def done(job: "Future[str]") -> None:
        if isinstance(job.exception(), Busy):
            refused.release()

    with ThreadPoolExecutor(count + REFUSED) as threads:
        jobs = [threads.submit(make_password, "x") for _ in range(count + REFUSED)]
        for job in jobs:
            job.add_done_callback(done)
        try:
            for _ in range(REFUSED):
                assert refused.acquire(timeout=DEADLINE_S), "the hashes are not limited"
            yield held
        finally:
            held.finish.set()
    assert sum(job.exception() is None for job in jobs) == count
    assert held.running_max == HASHES_MAX
    assert make_password("x"), "turns are free again"


def test_a_sign_in_beyond_the_limit_gets_the_time_to_retry(hashes: Hashes) -> None:
    answer = Client().post("/accounts/login/", FORM)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "2"
    assert "checks too many passwords" in answer.content.decode()


def test_a_sign_in_of_classic_beyond_the_limit_gets_the_reason(hashes: Hashes) -> None:
    answer = Client().post("/login/login.do", FORM).json()
    assert answer["status"] == -1
    assert "checks too many passwords" in answer["errMsg"]


def test_hashes_have_the_format_of_django(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    stored = make_password("a password")
    settings.PASSWORD_HASHERS = ["console.accounts.hashing.LimitedHasher"]
    assert check_password("a password", stored)
    assert not check_password("another", stored)
