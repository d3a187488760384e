"""Bodies and signatures of notices, compared with computations of other programs."""

import base64
import hashlib
import hmac
import json
import subprocess
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from console.services.alarms.models import Episode
from console.services.alarms.sending import formats
from console.services.alarms.sending.content import Notice, alarm_of
from tests.support.document_blocks import blocks_of

NOTICE = Notice(
    number=7,
    event="firing",
    cluster="prod",
    rule="lag <b>&",
    severity="critical",
    title="[critical] lag <b>& · cluster prod · 2",
    lines=("• orders: Lag: 20", "• … and 1 more"),
    note="runbook",
    url="https://gantry.example.org/clusters/prod/alarms/",
    at_ms=1_762_300_800_000,
    alarms=({"id": 1},),
    total=2,
)


def test_the_signature_of_a_webhook_is_the_hmac_of_timestamp_and_body() -> None:
    post = formats.webhook(NOTICE, "http://h/x", "key", 1_700_000_000_123)
    assert post.headers["X-Gantry-Timestamp"] == "1700000000123"
    signed = b"1700000000123." + post.body
    command = ["openssl", "dgst", "-sha256", "-hmac", "key", "-r"]
    found = subprocess.run(command, input=signed, capture_output=True, check=True)
    assert post.headers["X-Gantry-Signature"] == f"sha256={found.stdout.split()[0].decode()}"
    body = json.loads(post.body)
    assert (body["event"], body["delivery"], body["total"], body["more"]) == ("firing", 7, 2, 1)
    assert "X-Gantry-Signature" not in formats.webhook(NOTICE, "http://h/x", "", 1).headers


def test_the_page_has_the_members_of_a_webhook_and_a_check_of_its_signature() -> None:
    """docs/alarms.md."""
    sample, check = (
        next(each.code for each in blocks_of("docs/alarms.md") if each.language == language)
        for language in ("json", "python")
    )
    post = formats.webhook(NOTICE, "http://h/x", "key", 1_700_000_000_123)
    documented = json.loads(sample)
    assert set(documented) == set(json.loads(post.body))
    assert set(documented["alarms"][0]) == set(alarm_of(Episode(), "en"))
    timestamp, signature = (post.headers[f"X-Gantry-{name}"] for name in ("Timestamp", "Signature"))
    for body, expected in ((post.body, True), (post.body + b" ", False)):
        names = {"secret": b"key", "timestamp": timestamp, "body": body, "signature": signature}
        exec(check, names)
        assert names["is_genuine"] is expected


def test_dingtalk_is_signed_as_its_documentation_says() -> None:
    url, secret, now_ms = (
        "https://oapi.example/robot/send?access_token=t",
        "SECabc",
        1_577_262_236_757,
    )
    post = formats.dingtalk(NOTICE, url, secret, now_ms)
    query = parse_qs(urlsplit(post.url).query)
    text = f"{now_ms}\n{secret}"
    digest = hmac.new(secret.encode(), text.encode(), digestmod=hashlib.sha256).digest()
    assert query == {
        "access_token": ["t"],
        "timestamp": [str(now_ms)],
        "sign": [base64.b64encode(digest).decode()],
    }
    assert formats.dingtalk(NOTICE, url, "", now_ms).url == url
    assert json.loads(post.body)["markdown"]["title"] == NOTICE.title


def test_slack_text_is_escaped() -> None:
    body = json.loads(formats.slack(NOTICE, "https://h/x", "", 1).body)
    text = body["blocks"][0]["text"]["text"]
    assert "lag &lt;b&gt;&amp;" in text
    assert "<https://gantry.example.org/clusters/prod/alarms/>" in text


@pytest.mark.parametrize("line", ["x" * 50_000, "堆" * 50_000])
def test_long_notices_are_cut_to_the_limits_of_the_receivers(line: str) -> None:
    long = replace(NOTICE, lines=(line,))
    wecom = json.loads(formats.wecom(long, "https://h/x", "", 1).body)
    assert len(wecom["markdown"]["content"].encode()) <= formats.WECOM_BYTES_MAX
    dingtalk = json.loads(formats.dingtalk(long, "https://h/x", "", 1).body)
    assert len(dingtalk["markdown"]["text"].encode()) <= formats.DINGTALK_BYTES_MAX
    slack = json.loads(formats.slack(long, "https://h/x", "", 1).body)
    assert len(slack["blocks"][0]["text"]["text"]) <= formats.SLACK_CHARS_MAX
