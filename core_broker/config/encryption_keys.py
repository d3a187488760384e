"""The keys that encrypt secrets on disk: from a file, or from the environment.

A key is the Base64 text of 32 random bytes (`openssl rand -base64 32`), one per line. The first key
encrypts; further keys are old keys, and decrypt what they have encrypted.
"""

import binascii
import os
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

from core_broker.errors import SettingProblem, SettingsError

#: Variable of the environment with the keys, instead of a file. Never a setting: brokers send their
#: settings to administrators, and write them to the settings file.
ENCRYPTION_KEY_VARIABLE = "ROCKETMQ_AUTH_ENCRYPTION_KEY"
KEY_BYTES = 32
#: Bytes read of a key file; the rest is ignored.
KEY_FILE_BYTES_MAX = 4 * 1024
_SETTING = "authEncryptionKeyFile"


def encryption_keys(file: str, environ: Mapping[str, str] = os.environ) -> tuple[bytes, ...]:
    """Return the keys, none when neither the file nor the variable is set.

    Raises SettingsError, without any part of a key in the text.
    """
    text = environ.get(ENCRYPTION_KEY_VARIABLE, "")
    if file and text:
        raise _problem(file, f"one source of keys; {ENCRYPTION_KEY_VARIABLE} is set, too")
    source = file or ENCRYPTION_KEY_VARIABLE
    lines = (_content(file) if file else text).split()
    if file and not lines:
        raise _problem(source, "a file with a key")
    return tuple(_key(line, number, source) for number, line in enumerate(lines, 1))


def _content(file: str) -> str:
    try:
        with Path(file).open("rb") as content:
            return content.read(KEY_FILE_BYTES_MAX).decode()
    except OSError as error:
        raise _problem(file, f"a readable key file ({error.strerror})") from None
    except UnicodeDecodeError:
        raise _problem(file, "a key file of text") from None


def _key(line: str, number: int, source: str) -> bytes:
    try:
        key = b64decode(line, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise _problem(
            source,
            f"the Base64 text of {KEY_BYTES} bytes as key {number}; make one with "
            "openssl rand -base64 32",
        )
    return key


def _problem(value: str, expected: str) -> SettingsError:
    return SettingsError([SettingProblem(_SETTING, f"expected {expected}", value)])
