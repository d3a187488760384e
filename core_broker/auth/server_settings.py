"""The settings of access control that a server checks, also one without access control.

Apart from the users and their rules, which only a server with access control imports.
"""

from typing import TypeVar

import msgspec

from core_broker.config import AccessSettings
from core_broker.errors import SettingProblem, SettingsError

T = TypeVar("T", bound=msgspec.Struct)


class _Inner(msgspec.Struct, rename="camel"):
    access_key: str
    secret_key: str


def check_switches(config: AccessSettings) -> None:
    """Raise SettingsError for authorization without authentication.

    RocketMQ then believes every name that a request claims.
    """
    if config.authorization_enabled and not config.authentication_enabled:
        raise setting_problem(
            "authorizationEnabled", "true", "authenticationEnabled=true beside it"
        )


def codes_of(key: str, text: str) -> frozenset[int]:
    """Return the request codes of a white list; raises SettingsError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise setting_problem(key, text, "request codes separated by commas")
    return frozenset(map(int, parts))


def server_credentials(config: AccessSettings) -> tuple[str, str] | None:
    """Return access key and secret key of the server's own requests. Raises SettingsError."""
    text = config.inner_client_authentication_credentials
    if not text:
        return None
    key = "innerClientAuthenticationCredentials"
    inner = parsed(_Inner, key, text, '{"accessKey":"…","secretKey":"…"}')
    return inner.access_key, inner.secret_key


def parsed(kind: type[T], key: str, text: str, form: str) -> T:
    """Return the JSON value of a setting with a password. Raises SettingsError."""
    try:
        value = msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        value = None
    if value is None or not all(msgspec.structs.astuple(value)):
        # The value has a password, so no message quotes it.
        raise setting_problem(key, "***", f"JSON of the form {form}")
    return value


def setting_problem(key: str, value: str, expected: str) -> SettingsError:
    """Return the error about one setting."""
    return SettingsError([SettingProblem(key, f"expected {expected}", value)])
