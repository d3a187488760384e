"""Results of notices: a code with values, which each reader sees in their own language.

The worker that sends a notice has no reader. Values are texts of the receiver or of the operating
system, in their language.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

#: Maximum length of a stored value, characters.
VALUE_CHARS_MAX: Final = 500

#: Sentence of each code.
SENTENCES: Final[Mapping[str, Any]] = {
    "status": _("status %(status)s"),
    "accepted": _("accepted by %(host)s"),
    "silent": _("%(host)s does not answer: %(reason)s"),
    "redirect": _("status %(status)s: redirects are not followed"),
    "refused": _("status %(status)s: %(text)s"),
    "unresolved": _("the host %(host)s cannot be resolved: %(reason)s"),
    "private": _(
        "%(host)s has the address %(address)s, which is not public; CONSOLE_ALARM_NETWORKS "
        "permits networks"
    ),
    "undecryptable": _(
        "the URL cannot be decrypted, because SECRET_KEY has changed; save the receiver again"
    ),
    "no-errcode": _("the answer has no errcode"),
    "errcode": _("errcode %(errcode)s: %(text)s"),
    "no-mail-server": _("no mail server: set CONSOLE_SMTP_HOST"),
    "mail": _("%(host)s: %(reason)s"),
    "receiver-off": _("the receiver is switched off or deleted"),
    "receiver-deleted": _("the receiver was deleted"),
    "worker-ended": _("the worker ended during the last attempt"),
    "unexpected": _("unexpected error: %(reason)s"),
}


@dataclass(frozen=True, slots=True)
class Result:
    """What a receiver answered, or why an attempt failed. The code is one of SENTENCES."""

    code: str
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def stored(self) -> dict[str, Any]:
        """The JSON of the database."""
        values = {name: str(value)[:VALUE_CHARS_MAX] for name, value in self.values.items()}
        return {"code": self.code, "values": values}

    @property
    def text(self) -> str:
        """The sentence in the reader's language."""
        return text_of(self.stored)

    @property
    def english(self) -> str:
        """The sentence for logs and the audit list."""
        with override("en"):
            return self.text


def text_of(stored: Mapping[str, Any]) -> str:
    """Return the sentence of stored JSON in the reader's language; empty without a result.

    A code of a later version is shown as it is.
    """
    code = str(stored.get("code", ""))
    sentence = SENTENCES.get(code)
    if sentence is None:
        return code
    try:
        return str(sentence) % dict(stored.get("values", {}))
    except (KeyError, ValueError):
        return code
