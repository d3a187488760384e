"""Receivers: URL and secret encrypted in the database, changes, tests."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.frame.ciphers import Cipher
from console.frame.versions import locked, version_of
from console.gateway import NotAllowedNow, NotFound, now_ms
from console.gateway.changes import check_unchanged
from console.services.alarms.models import Receiver, ReceiverKind
from console.services.alarms.results import Result

CIPHER: Final = Cipher(b"gantry console: receivers of alarms")
RECEIVERS_MAX: Final = 50
RECIPIENTS_MAX: Final = 50
GONE: Final = gettext_lazy("There is no such receiver.")
URL_CHARS_MAX: Final = 2_000
SECRET_CHARS_MAX: Final = 500


class Target(msgspec.Struct, frozen=True):
    """The encrypted part of a receiver."""

    url: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Values of a new or changed receiver. None for `url` and `secret`: unchanged."""

    name: str
    kind: str
    enabled: bool
    all_rules: bool
    language: str
    recipients: str
    url: str | None
    secret: str | None


def target_of(receiver: Receiver) -> Target | None:
    """Decrypt; None when SECRET_KEY has changed since the receiver was saved."""
    return CIPHER.opened(receiver.encrypted, Target) if receiver.encrypted else Target()


def receiver_numbered(number: int) -> Receiver:
    found = Receiver.objects.filter(pk=number).first()
    if found is None:
        raise NotFound(GONE)
    return found


def version(receiver: Receiver) -> str:
    """Return the version of a receiver for forms and as ETag: each change encrypts anew."""
    return version_of(receiver.changed_ms, receiver.encrypted)


@transaction.atomic
def save(
    receiver: Receiver | None, draft: Draft, user: Any, expected: str | None = None
) -> Receiver:
    """Create or change a receiver.

    Raises ValidationError for values, NotAllowedNow for a limit, PreconditionFailed when the
    receiver has another version than `expected`.
    """
    if receiver is not None:
        receiver = locked(receiver, GONE)
        check_unchanged(expected, version(receiver))
    if receiver is None and Receiver.objects.count() >= RECEIVERS_MAX:
        text = gettext_lazy("At most {most} receivers are possible.")
        raise NotAllowedNow(format_lazy(text, most=RECEIVERS_MAX))
    same_name = Receiver.objects.filter(name=draft.name).exclude(
        pk=0 if receiver is None else receiver.pk
    )
    if same_name.exists():
        raise ValidationError({"name": _("Another receiver has this name.")})
    target = _merged(receiver, draft)
    row = receiver or Receiver()
    row.name, row.kind, row.enabled = draft.name, draft.kind, draft.enabled
    row.all_rules, row.language = draft.all_rules, draft.language
    row.recipients = draft.recipients if draft.kind == ReceiverKind.MAIL else ""
    row.shown, row.has_secret = shown_url(target.url), bool(target.secret)
    row.encrypted = CIPHER.sealed(target)
    row.changed_ms, row.changed_by = now_ms(), str(user)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:  # saved by another request since the check
        raise ValidationError({"name": _("Another receiver has this name.")}) from None
    return row


def _merged(receiver: Receiver | None, draft: Draft) -> Target:
    """Return URL and secret: those of the draft, else the stored ones. Raises ValidationError."""
    if draft.kind == ReceiverKind.MAIL:
        check_recipients(draft.recipients)
        return Target()
    before = (target_of(receiver) if receiver is not None else None) or Target()
    url = before.url if draft.url is None else draft.url
    check_url(url)
    is_same_host = shown_url(url) == shown_url(before.url)
    if receiver is not None and before.secret and draft.secret is None and not is_same_host:
        # Whoever may change the URL must not learn what the stored secret signs.
        raise ValidationError({"secret": _("Enter the secret again for another host.")})
    return Target(url, before.secret if draft.secret is None else draft.secret)


def check_url(url: str) -> None:
    """Raise ValidationError unless the URL is an http or https URL with a host."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url or len(url) > URL_CHARS_MAX:
        raise ValidationError({"url": _("Enter a URL that begins with https:// or http://.")})
    if parts.username or parts.password:
        raise ValidationError({"url": _("The URL must not have a user or a password.")})


def check_recipients(text: str) -> None:
    addresses = recipients_of(text)
    if not 0 < len(addresses) <= RECIPIENTS_MAX:
        raise ValidationError({"recipients": _("Enter mail addresses, separated by commas.")})
    for address in addresses:
        try:
            validate_email(address)
        except ValidationError as error:
            raise ValidationError({"recipients": error.messages}) from error


def recipients_of(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def shown_url(url: str) -> str:
    """Return scheme and host: path and query are secrets of chat programs."""
    if not url:
        return ""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def delete(receiver: Receiver, expected: str | None = None) -> None:
    """Delete a receiver; its waiting deliveries fail.

    Raises PreconditionFailed when the receiver has another version than `expected`.
    """
    with transaction.atomic():
        receiver = locked(receiver, GONE)
        check_unchanged(expected, version(receiver))
        receiver.deliveries.filter(state="waiting").update(
            state="failed", finished_ms=now_ms(), result=Result("receiver-deleted").stored
        )
        receiver.delete()
