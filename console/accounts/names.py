"""Names of new accounts: one script, no invisible characters, not like an existing name.

A name such as “admin” with a Cyrillic “a” would pass for another account in lists, alarms and
audit rows. The rules follow UTS #39: NFKC form, restriction level “highly restrictive”, and a
comparison of shapes without case. They hold at the creation; existing accounts keep signing in.

Pure, except `account_like`, which reads the accounts.
"""

import unicodedata
from collections.abc import Iterable
from typing import Final

from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame.characters import is_visible
from console.gateway import Unusable

#: Scripts that are written together, by the first word of the letters' Unicode names.
TOGETHER: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
#: Iteration mark, closing mark and prolonged sound mark: letters of several scripts.
OF_BOTH: Final = frozenset("\u3005\u3006\u30fc")
SMALL_CAPITAL: Final = "LATIN LETTER SMALL CAPITAL "
#: Letters that look like letters of ASCII, by the first and the last words of their Unicode names.
_LOOKS: Final = {
    "CYRILLIC CAPITAL LETTER": {
        "A": "a", "VE": "b", "IE": "e", "DZE": "s", "BYELORUSSIAN-UKRAINIAN I": "i", "JE": "j",
        "KA": "k", "EM": "m", "EN": "h", "O": "o", "ER": "p", "ES": "c", "TE": "t", "U": "y",
        "HA": "x", "IZHITSA": "v", "KOMI SJE": "g", "QA": "q", "WE": "w",
    },
    "CYRILLIC SMALL LETTER": {
        "A": "a", "IE": "e", "DZE": "s", "BYELORUSSIAN-UKRAINIAN I": "i", "JE": "j", "KA": "k",
        "PALOCHKA": "l", "O": "o", "ER": "p", "ES": "c", "U": "y", "HA": "x", "IZHITSA": "v",
        "QA": "q", "WE": "w", "SHHA": "h", "KOMI DE": "d", "GHE": "r", "PE": "n", "KOMI SJE": "g",
    },
    "GREEK CAPITAL LETTER": {
        "ALPHA": "a", "BETA": "b", "EPSILON": "e", "ZETA": "z", "ETA": "h", "IOTA": "i",
        "KAPPA": "k", "MU": "m", "NU": "n", "OMICRON": "o", "RHO": "p", "TAU": "t",
        "UPSILON": "y", "CHI": "x",
    },
    "GREEK SMALL LETTER": {
        "ALPHA": "a", "EPSILON": "e", "IOTA": "i", "KAPPA": "k", "NU": "v", "ETA": "n",
        "OMICRON": "o", "RHO": "p", "TAU": "t", "UPSILON": "u", "CHI": "x", "GAMMA": "y",
    },
    "LATIN SMALL LETTER": {
        "ALPHA": "a", "SCRIPT G": "g", "DOTLESS I": "i", "DOTLESS J": "j", "IOTA": "i",
    },
}  # fmt: skip
LIKE_ASCII: Final = {
    ord(unicodedata.lookup(f"{first} {last}")): plain
    for first, letters in _LOOKS.items()
    for last, plain in letters.items()
}


def check_name(name: str) -> None:
    """Raise Unusable, with the reason, for a name that no new account may have."""
    normal = unicodedata.normalize("NFKC", name)
    if normal != name:
        raise Unusable(
            format_lazy(_("Write the name with ordinary characters: “{name}”."), name=normal)
        )
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError as error:
        raise Unusable(" ".join(error.messages)) from error
    for character in name:
        if not _is_usable(character):
            raise Unusable(
                format_lazy(
                    _("A name may not contain the character {character}."),
                    character=_described(character),
                )
            )
    _check_scripts(name)


def account_like(name: str) -> str | None:
    """Return the name of an account that looks like this name, in any case; None: there is none."""
    return like(name, User.objects.values_list("username", flat=True))


def like(name: str, others: Iterable[str]) -> str | None:
    """Return the first of the other names that is the name in any case, or looks like the name."""
    own, shape = _folded(name), _shape(name)
    return next((each for each in others if _folded(each) == own or _shape(each) == shape), None)


def _is_usable(character: str) -> bool:
    """True for signs that the validator admits in ASCII, and for visible letters."""
    if character.isascii() or character in OF_BOTH:
        return True
    return unicodedata.category(character) in {"Lu", "Ll", "Lt", "Lo"} and is_visible(character)


def _check_scripts(name: str) -> None:
    first_of = {_script(each): each for each in reversed(name) if each.isalpha()}
    first_of.pop("", None)
    scripts = first_of.keys()
    if len(scripts) < 2 or any(scripts <= together for together in TOGETHER):
        return
    letters = sorted(first_of.values(), key=name.index)
    raise Unusable(
        format_lazy(
            _("The name mixes scripts: {letters}. Use letters of one script."),
            letters=", ".join(_described(each) for each in letters),
        )
    )


def _script(letter: str) -> str:
    if letter in OF_BOTH:
        return ""
    return unicodedata.name(letter).partition(" ")[0]


def _described(character: str) -> str:
    """A character as text that also names an invisible one: “a” (U+0061 LATIN SMALL LETTER A)."""
    known = unicodedata.name(character, "")
    visible = f"“{character}” " if is_visible(character) else ""
    return f"{visible}(U+{ord(character):04X} {known})"


def _folded(name: str) -> str:
    """Return the name without case and without the dot of a Turkish capital I."""
    return unicodedata.normalize("NFKC", name).casefold().replace("i\u0307", "i")


def _shape(name: str) -> str:
    """Return what a reader sees: letters of other scripts as the letters that they look like."""
    letters = unicodedata.normalize("NFKC", name).translate(LIKE_ASCII)
    return _folded("".join(_plain(each) for each in letters)).translate(LIKE_ASCII)


def _plain(letter: str) -> str:
    known = unicodedata.name(letter, "")
    rest = known.removeprefix(SMALL_CAPITAL)
    return rest if len(rest) == 1 and rest != known else letter
