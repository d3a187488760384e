"""Message bodies on pages and in REST resources: lossless, and no bytes shown as text."""

import hashlib
import json
import os

import pytest
from django.test import Client

from core_broker.client import CompressionType, Producer, ProducerSettings
from core_broker.message.model import Message
from tests.api.conftest import API, Api
from tests.api.stored import NASTY, RAW, routed_topic, store
from tests.api.test_pages import html
from tests.api.traffic import WAIT_S, Traffic

PAGE = "/clusters/local/messages/"


@pytest.fixture
def topic(traffic: Traffic) -> str:
    return routed_topic(traffic, "bodies")


def sent_with(traffic: Traffic, topic: str, body: bytes, kind: CompressionType) -> str:
    """Send a compressed body; returns the offset message id."""

    async def send() -> str:
        settings = ProducerSettings(compress_over_bytes=1, compress_type=kind)
        async with Producer("packer", traffic.namesrv_addr, settings=settings) as producer:
            return (await producer.send(Message(topic, body))).offset_msg_id

    return traffic._loop.wait(send(), WAIT_S)


@pytest.mark.must_beat(33)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (CompressionType.ZLIB, "zlib"),
        (CompressionType.LZ4, "LZ4"),
        (CompressionType.ZSTD, "Zstandard"),
    ],
)
def test_a_file_of_a_compressed_body_has_the_hash_of_what_was_sent(
    api: Api, page: Client, traffic: Traffic, topic: str, kind: CompressionType, name: str
) -> None:
    body = os.urandom(500) + b"again " * 5_000
    address = sent_with(traffic, topic, body, kind)
    shown = api.get(f"/messages/{address}")["body"]
    assert (shown["compression"], shown["encoding"], shown["form"]) == (name, "binary", "hex")
    digest = hashlib.sha256(body).hexdigest()
    assert shown["sha256"] == digest
    file = page.get(f"{PAGE}{address}/body/")
    assert hashlib.sha256(file.content).hexdigest() == digest
    assert digest in html(page, f"{PAGE}{address}/")


@pytest.mark.must_beat(33)
@pytest.mark.parametrize("form", ["", "text", "json", "tree", "xml", "nonsense"])
def test_a_binary_body_is_never_shown_as_text(
    api: Api, page: Client, traffic: Traffic, topic: str, form: str
) -> None:
    [sent] = store(traffic, Message(topic, b"\x00secret-looking\xff\x01"))
    assert api.get(f"/messages/{sent.offset_msg_id}?form={form}")["body"]["form"] == "hex"
    shown = html(page, f"{PAGE}{sent.offset_msg_id}/?form={form}")
    assert "00 73 65 63 72 65 74" in shown
    assert "· binary" in shown


def test_json_is_a_tree_that_folds_without_scripts(
    page: Client, traffic: Traffic, topic: str
) -> None:
    [sent] = store(traffic, Message(topic, b'{"order": {"total": 1.50, "items": [1, 2]}}'))
    shown = html(page, f"{PAGE}{sent.offset_msg_id}/")
    assert '<details open><summary><span class="key">order</span>' in shown
    assert '<span class="number">1.50</span>' in shown
    assert "&quot;total&quot;: 1.50" in html(page, f"{PAGE}{sent.offset_msg_id}/?form=json")


@pytest.mark.parametrize("form", ["tree", "json", "text", "xml", "hex", "base64"])
def test_no_body_runs_in_any_form(page: Client, traffic: Traffic, topic: str, form: str) -> None:
    bodies = (
        json.dumps({NASTY: [NASTY]}).encode(),
        f"<a b='&quot;'>{NASTY.replace('&amp;', '')}</a>".encode(),
        NASTY.encode(),
        b"\xff\xfe" + NASTY.encode("utf-16-le"),
    )
    for sent in store(traffic, *(Message(topic, body) for body in bodies)):
        answer = page.get(f"{PAGE}{sent.offset_msg_id}/?form={form}")
        assert answer.status_code == 200
        assert not any(raw in answer.content for raw in RAW)


def test_a_bomb_is_told_and_given_as_it_is_stored(
    api: Api, traffic: Traffic, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = sent_with(traffic, topic, b"a" * 3_000_000, CompressionType.ZLIB)
    monkeypatch.setattr("core_broker.message.model.decompress", _refuse)
    shown = api.get(f"/messages/{address}")["body"]
    assert "more than" in shown["problem"]
    assert shown["size_bytes"] < 10_000
    assert len(api.client.get(f"{API}/messages/{address}/body").content) == shown["size_bytes"]


def _refuse(body: bytes, sys_flag: int) -> bytes:
    from core_broker.message.compression import decompress

    return decompress(body, sys_flag, limit=1_000_000)
