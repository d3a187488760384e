"""`Idempotency-Key`: a repeated write is carried out once.

The first request with a key is carried out, and the response is stored for KEPT_HOURS hours. A
repeated request gets the stored response with `Idempotency-Replayed: true`. A different request
with the same key gets 422. A repeated request gets 409 while the first request is in progress, and
also when the console stopped before the response: the result is unknown. Responses of 500 and above
are not stored, so that clients can repeat the request. Secrets of a response are not stored.
"""

import hashlib
import json
import re
from datetime import timedelta
from typing import Any, ClassVar

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.models import KEY_CHARS_MAX, KeptAnswer
from console.frame.access import SAFE_METHODS

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
KEPT_HOURS = 24
KEPT_ANSWERS_MAX = 50_000
BODY_CHARS_MAX = 256 * 1024
KEPT_HEADERS = ("Location", "ETag")
USABLE_KEY = re.compile(rf"[\x21-\x7e]{{1,{KEY_CHARS_MAX}}}")


class KeyReused(APIException):
    status_code = 422
    default_detail = _("This Idempotency-Key was used for another request. Use a new one.")


class UnderWay(APIException):
    status_code = 409
    default_detail = _(
        "A request with this Idempotency-Key is under way, or was cut off and its result is not "
        "known. Look at the state before you send it under a new key."
    )
    wait = 1


class TooManyKeys(APIException):
    status_code = 503
    default_detail = _("Too many idempotency keys are stored. Repeat the request later.")
    wait = 60


class Replay(APIException):
    """Not an error: a stored response exists. `problem_response` returns the stored response."""

    def __init__(self, kept: KeptAnswer) -> None:
        super().__init__()
        self.kept = kept

    def response(self) -> Response:
        kept = self.kept
        body = None if kept.body is None else json.loads(kept.body)
        headers = {**kept.headers, REPLAYED: "true"}
        kind = headers.pop("Content-Type", None)
        return Response(body, kept.status, headers=headers, content_type=kind)


class IdempotentWrites(APIView):
    """A resource whose writes may carry a key. Access is checked before the key."""

    claimed: KeptAnswer | None = None
    #: Members of responses that are not stored; a repeated response has null in their place.
    secret_members: ClassVar[frozenset[str]] = frozenset()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        key = request.headers.get(HEADER)
        if key is not None and request.method not in SAFE_METHODS:
            self.claimed = claim(request, key)

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        if self.claimed is not None:
            kept, self.claimed = self.claimed, None
            keep(kept, final, self.secret_members)
        return final


def claim(request: Request, key: str) -> KeptAnswer:
    """Reserve the row for the response; raise Replay when the row already has a response."""
    if not USABLE_KEY.fullmatch(key):
        raise ValidationError({HEADER: [_("Expected 1 to 255 visible ASCII characters.")]})
    now, digest, user_id = timezone.now(), digest_of(request), request.user.pk or 0
    KeptAnswer.objects.filter(at__lt=now - timedelta(hours=KEPT_HOURS)).delete()
    if KeptAnswer.objects.count() >= KEPT_ANSWERS_MAX:
        raise TooManyKeys
    try:
        with transaction.atomic():
            return KeptAnswer.objects.create(user_id=user_id, key=key, request=digest, at=now)
    except IntegrityError:
        known = KeptAnswer.objects.filter(user_id=user_id, key=key).first()
    if known is None or (known.status is None and known.request == digest):
        raise UnderWay
    if known.request != digest:
        raise KeyReused
    raise Replay(known)


def keep(kept: KeptAnswer, response: Response, secret_members: frozenset[str]) -> None:
    """Store the response, or release the key when clients may repeat the request."""
    if response.status_code >= 500:
        kept.delete()
        return
    data = getattr(response, "data", None)
    if isinstance(data, dict):
        data = {name: None if name in secret_members else value for name, value in data.items()}
    text = JSONRenderer().render(data).decode() or "null"
    kept.status = response.status_code
    kept.headers = {name: response[name] for name in KEPT_HEADERS if name in response}
    if kind := getattr(response, "content_type", None):
        kept.headers["Content-Type"] = kind
    kept.body = text if len(text) <= BODY_CHARS_MAX else None
    kept.save(update_fields=["status", "headers", "body"])


def digest_of(request: Request) -> str:
    sent = (request.method or "", request.get_full_path(), request.content_type or "")
    digest = hashlib.sha256("\n".join(sent).encode())
    digest.update(b"\n" + request._request.body)
    return digest.hexdigest()
