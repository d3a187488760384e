"""The source of the keys that sign requests: options, tools.yml, none."""

from pathlib import Path

import pytest

from core_broker.client.acl import AclRpcHook
from core_broker.client.credentials import read_flat_yaml
from core_broker.errors import ClientError
from core_broker.mqadmin.credentials import signing_hooks


@pytest.fixture(autouse=True)
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROCKETMQ_HOME", raising=False)
    monkeypatch.delenv("MQADMIN_TOOLS_FILE", raising=False)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("accessKey: a\nsecretKey: b\n", {"accessKey": "a", "secretKey": "b"}),
        ("accessKey: 'a b' # c\n# secretKey: b\n", {"accessKey": "a b"}),
        ('secretKey: "x#y: z"\n', {"secretKey": "x#y: z"}),
        ("accessKey: a # the key\r\n", {"accessKey": "a"}),
        ("nothing\n: x\n", {}),
    ],
)
def test_reading_tools_yml(text: str, values: dict[str, str]) -> None:
    assert read_flat_yaml(text) == values


def test_requests_are_unsigned_without_keys() -> None:
    assert signing_hooks(None, None) == []


@pytest.mark.parametrize(("access", "secret"), [("a", None), (None, "s"), ("a", "")])
def test_half_a_key_is_refused(access: str | None, secret: str | None) -> None:
    with pytest.raises(ClientError, match="is missing"):
        signing_hooks(access, secret)


def test_keys_of_the_default_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    file = tmp_path / "conf" / "tools.yml"
    file.write_text("accessKey: rocketmq2\nsecretKey: 12345678\n")
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    (hook,) = signing_hooks(None, None)
    assert isinstance(hook, AclRpcHook)
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path / "elsewhere"))
    assert signing_hooks(None, None) == []
    monkeypatch.setenv("MQADMIN_TOOLS_FILE", str(file))
    assert len(signing_hooks(None, None)) == 1


def test_an_unreadable_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQADMIN_TOOLS_FILE", str(tmp_path / "absent.yml"))
    with pytest.raises(ClientError, match=r"absent\.yml"):
        signing_hooks(None, None)
