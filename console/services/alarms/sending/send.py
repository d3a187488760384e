"""A notice to a receiver of any kind."""

import json
import smtplib
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from console.services.alarms.models import Receiver, ReceiverKind
from console.services.alarms.receivers import recipients_of, target_of
from console.services.alarms.results import Result
from console.services.alarms.sending import formats
from console.services.alarms.sending.content import Notice
from console.services.alarms.sending.http import REQUEST_S_MAX, SendFailed, post

Format = Callable[[Notice, str, str, int], formats.Post]

FORMATS: Final[Mapping[str, Format]] = {
    ReceiverKind.WEBHOOK: formats.webhook,
    ReceiverKind.DINGTALK: formats.dingtalk,
    ReceiverKind.WECOM: formats.wecom,
    ReceiverKind.SLACK: formats.slack,
}
#: Kinds that answer 200 with an error code in JSON.
WITH_CODES: Final = frozenset({ReceiverKind.DINGTALK, ReceiverKind.WECOM})
#: Maximum length of their text of an error, characters.
ERRMSG_CHARS_MAX: Final = 200


def send(notice: Notice, receiver: Receiver, now_ms: int) -> Result:
    """Send a notice and return what the receiver answered. Raises SendFailed."""
    if receiver.kind == ReceiverKind.MAIL:
        return _mail(notice, receiver)
    target = target_of(receiver)
    if target is None:
        raise SendFailed("undecryptable", is_final=True)
    request = FORMATS[receiver.kind](notice, target.url, target.secret, now_ms)
    status, body = post(request, settings.ALARM_NETWORKS)
    if receiver.kind in WITH_CODES:
        _check_code(body)
    return Result("status", {"status": str(status)})


def _check_code(body: bytes) -> None:
    """DingTalk and WeCom answer {"errcode": 0} for an accepted message."""
    try:
        answer: Any = json.loads(body)
        code = answer.get("errcode")
    except (ValueError, AttributeError) as error:
        raise SendFailed("no-errcode") from error
    if code != 0:
        text = str(answer.get("errmsg", ""))[:ERRMSG_CHARS_MAX]
        raise SendFailed("errcode", errcode=code, text=text)


def _mail(notice: Notice, receiver: Receiver) -> Result:
    if not settings.EMAIL_HOST:
        raise SendFailed("no-mail-server", is_final=True)
    recipients = recipients_of(receiver.recipients)
    subject = " ".join(notice.title.split())
    connection = get_connection(timeout=int(REQUEST_S_MAX))
    message = EmailMessage(subject, notice.text, None, recipients, connection=connection)
    try:
        message.send()
    except (smtplib.SMTPException, OSError) as error:
        raise SendFailed("mail", host=settings.EMAIL_HOST, reason=error) from error
    return Result("accepted", {"host": settings.EMAIL_HOST})
