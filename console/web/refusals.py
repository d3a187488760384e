"""Answers to requests that `admission.py` refuses, without a call of Django's handlers.

Below /api/ a problem, for browsers a page in every language of the console, for others text.
"""

import json
from contextlib import suppress
from html import escape
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.utils.translation import override

from console.api.problems import CONTENT_TYPE as PROBLEM_TYPE
from console.api.problems import problem

#: `Retry-After` of a refusal with status 503, seconds.
RETRY_AFTER_S = 2

PAGE = """<!doctype html>
<html lang="{language}">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>{status} · Gantry</title>
</head>
<body>
  <main>
    <h1>{status} {phrase}</h1>
    {texts}
  </main>
</body>
</html>
"""


class Refused(Exception):
    """Status, cause and hint of a refused request; `kind` is the label of the metric.

    The texts are lazy: the page has the texts in every language.
    """

    def __init__(self, kind: str, status: HTTPStatus, cause: Any, hint: Any = "") -> None:
        super().__init__(kind, status, cause, hint)
        self.kind, self.status, self.cause, self.hint = kind, status, cause, hint

    def __str__(self) -> str:
        return self.text(settings.LANGUAGE_CODE)

    def text(self, language: str) -> str:
        with override(language):
            return f"{self.cause} {self.hint}".strip()


async def refuse(scope: dict[str, Any], send: Any, refusal: Refused) -> None:
    """Answer an HTTP request, or a WebSocket of a server that can answer with a status."""
    content_type, body = _content(scope, refusal)
    headers = [
        (b"content-type", content_type.encode()),
        (b"content-length", str(len(body.encode())).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    if refusal.status is HTTPStatus.SERVICE_UNAVAILABLE:
        headers.append((b"retry-after", str(RETRY_AFTER_S).encode()))
    kind = "websocket.http" if scope["type"] == "websocket" else "http"
    with suppress(OSError):  # the client has left
        await send(
            {"type": f"{kind}.response.start", "status": refusal.status.value, "headers": headers}
        )
        await send({"type": f"{kind}.response.body", "body": body.encode()})


def _content(scope: dict[str, Any], refusal: Refused) -> tuple[str, str]:
    """Return content type and body."""
    status = refusal.status
    if scope["path"].removeprefix(settings.PREFIX).startswith("/api/"):
        kind = status.phrase.lower().replace(" ", "-")
        return PROBLEM_TYPE, json.dumps(problem(kind, status.phrase, status.value, str(refusal)))
    headers = dict(scope["headers"])
    # A part of a page shows the text in the place of the part.
    if b"text/html" not in headers.get(b"accept", b"") or b"hx-request" in headers:
        return "text/plain; charset=utf-8", f"{refusal}\n"
    texts = "\n    ".join(
        f'<p lang="{language}">{escape(refusal.text(language))}</p>'
        for language, _name in settings.LANGUAGES
    )
    page = PAGE.format(
        language=settings.LANGUAGE_CODE, status=status.value, phrase=status.phrase, texts=texts
    )
    return "text/html; charset=utf-8", page
