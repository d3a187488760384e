"""Bodies and signatures of each kind of receiver. Pure.

webhook     JSON; X-Gantry-Signature is the HMAC-SHA256 of "<timestamp>.<body>"
DingTalk    markdown; URL parameters timestamp and sign, the HMAC-SHA256 of "<timestamp>\\n<secret>"
WeCom       markdown, at most 4,096 bytes
Slack       incoming webhook with one section of mrkdwn
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec

from console.services.alarms.sending.content import Notice

VERSION: Final = 1
WECOM_BYTES_MAX: Final = 4_096
#: DingTalk refuses messages over 20,000 bytes, Slack texts over 3,000 characters.
DINGTALK_BYTES_MAX: Final = 18_000
SLACK_CHARS_MAX: Final = 2_900


@dataclass(frozen=True, slots=True)
class Post:
    """One HTTP request."""

    url: str
    body: bytes
    headers: Mapping[str, str]


def webhook(notice: Notice, url: str, secret: str, now_ms: int) -> Post:
    """Return the request of a webhook; signed when there is a secret."""
    body = msgspec.json.encode(
        {
            "version": VERSION,
            "event": notice.event,
            "delivery": notice.number,
            "cluster": notice.cluster,
            "rule": notice.rule,
            "severity": notice.severity,
            "title": notice.title,
            "note": notice.note,
            "url": notice.url or None,
            "time_ms": notice.at_ms,
            "alarms": notice.alarms,
            "total": notice.total,
            "more": notice.more,
        }
    )
    timestamp = str(now_ms)
    headers = {
        "X-Gantry-Event": notice.event,
        "X-Gantry-Delivery": str(notice.number),
        "X-Gantry-Timestamp": timestamp,
    }
    if secret:
        headers["X-Gantry-Signature"] = f"sha256={webhook_signature(secret, timestamp, body)}"
    return Post(url, body, headers)


def webhook_signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the hexadecimal HMAC-SHA256 of timestamp, a dot, and the body."""
    signed = timestamp.encode() + b"." + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def dingtalk(notice: Notice, url: str, secret: str, now_ms: int) -> Post:
    text = _cut(_markdown(notice), DINGTALK_BYTES_MAX)
    body = {"msgtype": "markdown", "markdown": {"title": notice.title, "text": text}}
    return Post(dingtalk_url(url, secret, now_ms), msgspec.json.encode(body), {})


def dingtalk_url(url: str, secret: str, now_ms: int) -> str:
    """Add DingTalk's parameters timestamp and sign; unchanged without a secret."""
    if not secret:
        return url
    signed = f"{now_ms}\n{secret}".encode()
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    query = urlencode({"timestamp": now_ms, "sign": base64.b64encode(digest).decode()})
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=f"{parts.query}&{query}" if parts.query else query))


def wecom(notice: Notice, url: str, secret: str, now_ms: int) -> Post:
    content = _cut(_markdown(notice), WECOM_BYTES_MAX)
    body = {"msgtype": "markdown", "markdown": {"content": content}}
    return Post(url, msgspec.json.encode(body), {})


def slack(notice: Notice, url: str, secret: str, now_ms: int) -> Post:
    lines = [f"*{_slack_text(notice.title)}*", *map(_slack_text, notice.lines)]
    if notice.note:
        lines.append(_slack_text(notice.note))
    if notice.url:
        lines.append(f"<{notice.url}>")
    text = "\n".join(lines)[:SLACK_CHARS_MAX]
    section: dict[str, Any] = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
    body = {"text": notice.title, "blocks": [section]}
    return Post(url, msgspec.json.encode(body), {})


def _markdown(notice: Notice) -> str:
    link = [f"[{notice.url}]({notice.url})"] if notice.url else []
    note = [f"> {notice.note}"] if notice.note else []
    return "\n\n".join([f"### {notice.title}", *notice.lines, *note, *link])


def _slack_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, bytes_max: int) -> str:
    """Cut a text to a size in bytes, at a character."""
    data = text.encode()
    return text if len(data) <= bytes_max else data[: bytes_max - 3].decode(errors="ignore") + "…"
