"""The TLS settings of servers and clients, under the names of RocketMQ's system properties.

sources        settings file < ROCKETMQ_TLS_… < file tls.config.file, which is read again at a
               reload of the certificates
not in a file  tls.server.mode and tls.enable, as in RocketMQ
passwords      only in tls.config.file or in the environment, because brokers send their
               settings to administrators (codes 26 and 319)
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, Literal, TypeVar

from core_broker.config.assignments import Assignment
from core_broker.config.conversion import typed_values
from core_broker.config.property_files import parse_properties
from core_broker.config.settings import ENVIRONMENT_PREFIX, Settings, key, plain_name
from core_broker.errors import SettingProblem, SettingsError

TlsServerMode = Literal["disabled", "permissive", "enforcing"]
ClientAuth = Literal["none", "optional", "require"]

#: Path of the file that RocketMQ reads by default; a missing default file is no error.
TLS_CONFIG_FILE = "/etc/rocketmq/tls.properties"
#: Bytes read of tls.config.file; the rest is ignored.
TLS_CONFIG_BYTES_MAX = 64 * 1024
#: Keys of passwords; each is also a variable of the environment, as for every key.
PASSWORD_KEYS = ("tls.server.keyPassword", "tls.client.keyPassword")
_NOT_IN_FILE = {"tls.server.mode", "tls.enable", "tls.config.file"}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings(Settings):
    """The TLS keys; the settings of broker and name server have the same keys."""

    tls_enable: bool = False
    tls_config_file: str = TLS_CONFIG_FILE
    tls_test_mode_enable: bool = True
    tls_server_mode: TlsServerMode = key("permissive")  # noqa: RUF009
    tls_server_key_path: str = ""
    tls_server_cert_path: str = ""
    tls_server_need_client_auth: ClientAuth = key("none")  # noqa: RUF009
    tls_server_auth_client: bool = False
    tls_server_trust_cert_path: str = ""
    tls_client_key_path: str = ""
    tls_client_cert_path: str = ""
    tls_client_auth_server: bool = False
    tls_client_trust_cert_path: str = ""
    # Gantry's own: compare the server's name or address with its certificate.
    tls_client_check_host_name: bool = False


S = TypeVar("S", bound=TlsSettings)


@dataclass(frozen=True, slots=True)
class TlsInForce(Generic[S]):
    """Settings with the values of tls.config.file, and the passwords of the keys."""

    settings: S
    server_key_password: str = field(default="", repr=False)
    client_key_password: str = field(default="", repr=False)


def tls_of_environment(environ: Mapping[str, str] = os.environ) -> TlsSettings:
    """Return the TLS settings of a client program, from the variables ROCKETMQ_TLS_….

    Raises SettingsError with every wrong value.
    """
    variables = _variables(environ)
    assignments = [
        Assignment(name, found[1], f"environment {found[0]}")
        for name in TlsSettings.keys()  # noqa: SIM118
        if (found := variables.get(plain_name(name)))
    ]
    problems: list[SettingProblem] = []
    values = typed_values(TlsSettings, assignments, problems)
    if problems:
        raise SettingsError(problems)
    return TlsSettings(**values)


def tls_in_force(settings: S, environ: Mapping[str, str] = os.environ) -> TlsInForce[S]:
    """Read tls.config.file; raises SettingsError for an unreadable file and for wrong values."""
    variables = _variables(environ)
    passwords = {name: variables.get(plain_name(name), ("", ""))[1] for name in PASSWORD_KEYS}
    problems: list[SettingProblem] = []
    assignments: list[Assignment] = []
    file = settings.tls_config_file
    known = TlsSettings.keys()
    for entry in parse_properties(_text_of(file)):
        if entry.key in passwords:
            passwords[entry.key] = entry.value
        elif entry.key in known and entry.key not in _NOT_IN_FILE:
            assignments.append(Assignment(entry.key, entry.value, file, entry.line))
        else:
            log.warning("%s:%d: %s has no effect in this file", file, entry.line, entry.key)
    values = typed_values(settings, assignments, problems)
    if problems:
        raise SettingsError(problems)
    return TlsInForce(
        replace(settings, **values),
        passwords["tls.server.keyPassword"],
        passwords["tls.client.keyPassword"],
    )


def _variables(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return (variable, value) of each setting in the environment, by plain name."""
    return {
        plain_name(variable.removeprefix(ENVIRONMENT_PREFIX)): (variable, value)
        for variable, value in environ.items()
        if variable.startswith(ENVIRONMENT_PREFIX)
    }


def _text_of(file: str) -> str:
    if not file:
        return ""
    try:
        with Path(file).open("rb") as source:
            return source.read(TLS_CONFIG_BYTES_MAX).decode()
    except FileNotFoundError:
        if file == TLS_CONFIG_FILE:
            return ""
        reason = "there is no such file"
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    expected = f"expected a readable file ({reason})"
    raise SettingsError([SettingProblem("tls.config.file", expected, file)])
