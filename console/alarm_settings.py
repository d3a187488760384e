"""Settings of the alarms' notices from environment variables; part of `environment.py`."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from core_broker.limits import PORT_MAX

#: Ports of mail servers by security.
SMTP_PORTS = {"starttls": 587, "tls": 465, "none": 25}
GROUP_S_MAX = 600
GROUP_S_DEFAULT = 10


class Reader(Protocol):
    """The part of the environment's reader that these settings need."""

    def text(self, name: str) -> str: ...
    def number(self, name: str, least: int, most: int, default: int) -> int: ...
    def networks(self, name: str) -> tuple[str, ...]: ...
    def complain(self, name: str, value: str, expected: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Smtp:
    """The mail server; an empty host means none."""

    host: str
    port: int
    security: str
    user: str
    password: str = field(repr=False)
    sender: str


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """Settings of notices; `networks` are private addresses that receivers may have."""

    group_seconds: int
    networks: tuple[str, ...]
    #: Address of the console for people, without a slash at the end; in notices.
    console_url: str
    smtp: Smtp


def read_alarm_settings(read: Reader) -> AlarmSettings:
    """Read the variables; problems go to the reader."""
    console_url = read.text("CONSOLE_URL").rstrip("/")
    if console_url and not re.fullmatch(r"https?://[^/\s]+", console_url):
        read.complain("CONSOLE_URL", console_url, "scheme://host[:port]")
    return AlarmSettings(
        read.number("CONSOLE_ALARM_GROUP_SECONDS", 0, GROUP_S_MAX, GROUP_S_DEFAULT),
        read.networks("CONSOLE_ALARM_NETWORKS"),
        console_url,
        _smtp(read),
    )


def _smtp(read: Reader) -> Smtp:
    """Read the mail server; the password is in a file, so that no list of processes shows it."""
    security = read.text("CONSOLE_SMTP_SECURITY").lower() or "starttls"
    if security not in SMTP_PORTS:
        read.complain("CONSOLE_SMTP_SECURITY", security, f"one of {', '.join(SMTP_PORTS)}")
    port = read.number("CONSOLE_SMTP_PORT", 1, PORT_MAX, SMTP_PORTS.get(security, 25))
    file, password = read.text("CONSOLE_SMTP_PASSWORD_FILE"), ""
    if file:
        try:
            password = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            read.complain("CONSOLE_SMTP_PASSWORD_FILE", file, f"a readable file ({problem})")
    sender = read.text("CONSOLE_SMTP_FROM") or "gantry@localhost"
    host, user = read.text("CONSOLE_SMTP_HOST"), read.text("CONSOLE_SMTP_USER")
    return Smtp(host, port, security, user, password, sender)
