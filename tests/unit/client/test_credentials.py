"""Saved keys: what a file holds, and who can read the file."""

from pathlib import Path

import pytest

from core_broker.client import Credentials
from core_broker.errors import ClientError

SECRETS = [
    *("12345678", "a b", " # not a comment", "it's", 'a "quoted" word', "key: value", "#"),
    *("\u5bc6\u94a5", "'", '"', "back\\slash", " blanks "),
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("token", ["", "token"])
def test_saved_keys_are_read_again(tmp_path: Path, secret: str, token: str) -> None:
    credentials = Credentials("orders", secret, token)
    credentials.save(tmp_path / "keys.yml")
    assert Credentials.from_file(tmp_path / "keys.yml") == credentials
    assert (tmp_path / "keys.yml").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("secret", ["two\nlines", '"both" kinds\''])
def test_keys_that_the_format_cannot_hold_are_refused(tmp_path: Path, secret: str) -> None:
    with pytest.raises(ClientError, match="cannot be saved") as caught:
        Credentials("orders", secret).save(tmp_path / "keys.yml")
    assert secret not in str(caught.value)
    assert not (tmp_path / "keys.yml").exists()
