"""Keys that encrypt secrets on disk."""

from base64 import b64encode
from pathlib import Path

import pytest

from core_broker.config.encryption_keys import ENCRYPTION_KEY_VARIABLE, encryption_keys
from core_broker.config.loading import load_broker_config
from core_broker.errors import SettingsError

KEYS = (b"a" * 32, b"b" * 32)
TEXT = "\n".join(b64encode(key).decode() for key in KEYS) + "\n"


def test_keys_of_a_file_and_of_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "auth.key"
    file.write_text(TEXT)
    assert encryption_keys("", {}) == ()
    assert encryption_keys(str(file), {}) == KEYS
    assert encryption_keys("", {ENCRYPTION_KEY_VARIABLE: TEXT}) == KEYS


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"c2VjcmV0", b"secret-key!", b"\xff\xfe", TEXT.encode() + b"secret-key"]
)
def test_a_wrong_file_names_no_key(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "auth.key"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match="authEncryptionKeyFile") as error:
        encryption_keys(str(file), {})
    assert "secret" not in str(error.value)
    assert "YWFh" not in str(error.value)


def test_a_missing_file_and_two_sources(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        encryption_keys(str(tmp_path / "none"), {})
    with pytest.raises(SettingsError, match="one source of keys"):
        encryption_keys(str(tmp_path / "none"), {ENCRYPTION_KEY_VARIABLE: TEXT})


def test_the_variable_is_known_and_no_setting() -> None:
    loaded = load_broker_config(["-p"], {ENCRYPTION_KEY_VARIABLE: TEXT})
    assert not any("ENCRYPTION" in warning for warning in loaded.warnings)
    assert loaded.listing is not None
    assert "YWFh" not in loaded.listing
