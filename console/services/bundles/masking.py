"""Masking of a bundle: known secrets wherever they stand, and texts that look like a secret."""

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from console.gateway import gateway
from console.services.alarms.models import Receiver
from console.services.alarms.receivers import target_of
from console.services.clusters.credentials import DatabaseCredentials

HIDDEN: Final = "***"
#: Shorter secrets are not searched for: the replacement would change other texts.
SECRET_CHARS_MIN: Final = 4
#: A name of a secret, then `=` or `:`, then the value; also in JSON, headers and URLs.
ASSIGNED: Final = re.compile(
    r"""(?ix) ( [\w.-]* (?: passw(?:or)?d | passphrase | secret | token | credential | signature
      | (?:access|private|api|encryption)[-_.]?key ) [\w.-]* ["']? \s* [=:] \s* ["']? )
      (?! \s | \*\*\* | (?:true|false|null|none)\b ) ( [^\s"'&,;}\]]+ )"""
)
AUTHORIZATION: Final = re.compile(r"(?i)(\b(?:bearer|basic|token)\s+)([A-Za-z0-9+/=_.~-]{8,})")
URL_USER: Final = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)([^\s/@]+)(@)")
PEM: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S
)


class Mask:
    """Replaces secrets in texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {each for each in secrets if len(each) >= SECRET_CHARS_MIN}
        # Longest first: one secret may be a part of another.
        ordered = sorted(found, key=lambda each: (-len(each), each))
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def text(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        text = PEM.sub(HIDDEN, text)
        text = URL_USER.sub(rf"\1{HIDDEN}\3", text)
        text = AUTHORIZATION.sub(rf"\1{HIDDEN}", text)
        return ASSIGNED.sub(rf"\1{HIDDEN}", text)


def known_secrets() -> Iterator[str]:
    """Yield the secrets of the console: of its settings, clusters and receivers."""
    yield str(settings.SECRET_KEY)
    yield from map(str, settings.SECRET_KEY_FALLBACKS)
    yield settings.EMAIL_HOST_PASSWORD
    yield bytes(settings.METRICS_TOKEN).decode(errors="replace")
    yield urlsplit(settings.REDIS_URL).password or ""
    for database in settings.DATABASES.values():
        yield str(database.get("PASSWORD") or "")
    stored = DatabaseCredentials()
    for cluster in gateway.clusters():
        for found in (cluster.signing.fixed, stored.credentials(cluster.name)):
            if found is not None:
                yield found.secret_key
                yield found.security_token
    for receiver in Receiver.objects.all():
        target = target_of(receiver)
        if target is not None:
            parts = urlsplit(target.url)
            yield from (target.secret, target.url, parts.query, parts.path.strip("/"))
