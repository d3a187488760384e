import importlib.util

import pytest

from console.launcher import java


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with neither Java nor the packages of Spark."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    return monkeypatch


def test_missing_pyspark_is_said_first(bare: pytest.MonkeyPatch) -> None:
    assert java.notice() == java.NO_SPARK


def test_missing_java_is_said(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(importlib.util, "find_spec", lambda name: name if name == "pyspark" else None)
    assert java.notice() == java.NO_JAVA


def test_any_of_three_javas_will_do(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(importlib.util, "find_spec", lambda name: name)
    assert java.notice() is None
    bare.setattr(importlib.util, "find_spec", lambda name: name if name == "pyspark" else None)
    bare.setenv("JAVA_HOME", "/opt/java")
    assert java.notice() is None
