"""The stored receiver of the demo: one row, on during a demo, off in later starts without one."""

from pathlib import Path

import pytest

from console.launcher.prepare import keep_demo_receiver
from console.services.alarms.demo_receiver import NAME, set_demo_receiver
from console.services.alarms.models import Receiver
from console.services.alarms.receivers import target_of

pytestmark = [pytest.mark.django_db, pytest.mark.must_beat(12)]


def test_each_demo_has_the_receiver_of_its_start() -> None:
    assert not set_demo_receiver("")
    assert not Receiver.objects.exists(), "no receiver without a demo"
    assert set_demo_receiver("http://127.0.0.1:1001/notices")
    assert set_demo_receiver("http://127.0.0.1:1002/notices")
    row = Receiver.objects.get()
    assert (row.name, row.enabled, row.all_rules, row.language) == (NAME, True, True, "en")
    target = target_of(row)
    assert target is not None
    assert target.url == "http://127.0.0.1:1002/notices"


def test_a_start_without_a_demo_switches_it_off() -> None:
    set_demo_receiver("http://127.0.0.1:1001/notices")
    Receiver.objects.update(language="zh-hans")
    assert not set_demo_receiver("")
    assert not Receiver.objects.get().enabled
    assert set_demo_receiver("http://127.0.0.1:1003/notices")
    row = Receiver.objects.get()
    assert (row.enabled, row.language) == (True, "zh-hans"), "the user's choice stays"


def test_only_a_start_after_a_demo_switches_it_off(tmp_path: Path) -> None:
    Receiver.objects.create(name=NAME, kind="mail", recipients="a@example.org", changed_ms=1)
    keep_demo_receiver(tmp_path, "")
    assert Receiver.objects.get().enabled, "the receiver of a user"
    keep_demo_receiver(tmp_path, "http://127.0.0.1:1001/notices")
    keep_demo_receiver(tmp_path, "")
    assert not Receiver.objects.get().enabled
    Receiver.objects.update(enabled=True)
    keep_demo_receiver(tmp_path, "")
    assert Receiver.objects.get().enabled, "a user switched it on again"
