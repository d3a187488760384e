"""Texts of accounts and white lists, checked before a broker changes.

orders=PUB|SUB        permission of a topic or a group: DENY, PUB, SUB or PUB|SUB
10.0.0.*              address pattern, see `core_broker/auth/acl1/addresses.py`
"""

from collections.abc import Iterable
from typing import Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from core_broker.auth.acl1.addresses import parse_pattern
from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.permissions import (
    PERMISSIONS,
    is_known_permission,
    parse_permission,
    permission_text,
)

#: Characters of access keys and secret keys, see `core_broker/auth/acl1/accounts.py`.
KEY_CHARS_MIN: Final = 7
KEY_CHARS_MAX: Final = 255
SECRET_CHARS_MAX: Final = 1_024
#: Characters of a topic or group in a permission.
NAME_CHARS_MAX: Final = 255
#: Permissions of one list of an account; patterns of a white list.
PERMISSIONS_MAX: Final = 1_000
PATTERNS_MAX: Final = 1_000
#: Characters of an invalid text that an error quotes.
QUOTED_CHARS_MAX: Final = 80

#: The permissions that an account may have, in the order of a form.
WORDS: Final = ("DENY", "PUB", "SUB", "PUB|SUB")


class AccountError(ValueError):
    """An invalid text; the argument is a lazy translation."""


def check_access_key(text: str) -> None:
    """Raise AccountError for an access key that brokers refuse."""
    _check_key(text, KEY_CHARS_MAX)


def check_secret_key(text: str) -> None:
    """Raise AccountError for a secret key that brokers refuse."""
    _check_key(text, SECRET_CHARS_MAX)


def _check_key(text: str, most: int) -> None:
    is_clean = text.isprintable() and text == text.strip()
    if not KEY_CHARS_MIN <= len(text) <= most or not is_clean:
        raise AccountError(
            format_lazy(
                _("{least} to {most} printable characters, no blank at begin or end."),
                least=KEY_CHARS_MIN,
                most=most,
            )
        )


def normal_word(word: str) -> str:
    """The permission as Gantry writes the permission; an unknown word is DENY, as for brokers."""
    return permission_text(parse_permission(word))


def normal_permissions(items: Iterable[str]) -> tuple[str, ...]:
    """The items `name=permission` of a broker's answer; of equal names the last counts."""
    perms = {}
    for item in items:
        name, _sign, word = item.partition("=")
        perms[name.strip()] = normal_word(word)
    return tuple(f"{name}={word}" for name, word in perms.items())


def check_word(word: str) -> str:
    """Return the permission in Gantry's spelling; raises AccountError."""
    if not is_known_permission(word):
        raise AccountError(
            format_lazy(
                _("“{text}” is not one of: {known}"),
                text=word[:QUOTED_CHARS_MAX],
                known=", ".join(PERMISSIONS),
            )
        )
    return normal_word(word)


def check_permissions(items: Iterable[str]) -> tuple[str, ...]:
    """Return the items `name=permission` in Gantry's spelling; raises AccountError."""
    checked: dict[str, str] = {}
    for item in items:
        name, sign, word = (part.strip() for part in item.partition("="))
        is_name = name and name.isprintable() and "," not in name and len(name) <= NAME_CHARS_MAX
        if not sign or not is_name or name.startswith("%RETRY%"):
            raise AccountError(
                format_lazy(
                    _(
                        "“{text}” is no permission like “orders=PUB|SUB”: the name has at most "
                        "{most} printable characters, no comma and no “=”; a retry topic is its "
                        "group."
                    ),
                    text=item[:QUOTED_CHARS_MAX],
                    most=NAME_CHARS_MAX,
                )
            )
        if name in checked:
            raise AccountError(format_lazy(_("“{name}” is listed twice."), name=name))
        checked[name] = check_word(word)
    if len(checked) > PERMISSIONS_MAX:
        raise AccountError(
            format_lazy(_("A list may have {most} permissions."), most=PERMISSIONS_MAX)
        )
    return tuple(f"{name}={word}" for name, word in checked.items())


def check_pattern(text: str) -> str:
    """Return an address pattern without blanks at the ends; raises AccountError."""
    try:
        return parse_pattern(text).text
    except RulesError as wrong:
        raise AccountError(_refused(text, wrong)) from wrong


def check_patterns(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of a global white list; raises AccountError."""
    patterns = dict.fromkeys(check_pattern(text) for text in texts)
    patterns.pop("", None)
    for pattern in patterns:
        if "," in pattern and "{" not in pattern:
            raise AccountError(
                format_lazy(
                    _("“{text}” has several addresses; write one pattern per line."),
                    text=pattern[:QUOTED_CHARS_MAX],
                )
            )
    if len(patterns) > PATTERNS_MAX:
        raise AccountError(
            format_lazy(_("A white list may have {most} patterns."), most=PATTERNS_MAX)
        )
    return tuple(patterns)


def _refused(text: str, reason: Exception) -> Any:
    return format_lazy(
        _("“{text}” is no address pattern: {reason}"),
        text=text[:QUOTED_CHARS_MAX],
        reason=str(reason)[:400],
    )
