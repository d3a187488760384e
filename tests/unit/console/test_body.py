"""Bodies for people: never bytes as text, never a silent cut."""

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.messages.body import HEX_BYTES_MAX, TEXT_BYTES_MAX, BodyForm, preview, view_body
from core_broker.message import sysflag
from core_broker.message.model import MessageExt
from tests.support.stored_messages import stored


def message(body: bytes, sys_flag: int = 0) -> MessageExt:
    made = stored(0, 0, 0)
    made.body, made.sys_flag = body, sys_flag
    return made


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (b'{"a": [1, 2]}', BodyForm.JSON),
        (b"  [1]\n", BodyForm.JSON),
        (b"{not json", BodyForm.TEXT),
        ("订单".encode(), BodyForm.TEXT),
        (b"", BodyForm.TEXT),
        (b"\x00\x01", BodyForm.HEX),
        (b"\xff\xfe", BodyForm.HEX),
        (b"bell \x07", BodyForm.HEX),
        (b"[" * 100_000, BodyForm.TEXT),
    ],
)
def test_the_best_form_is_chosen(body: bytes, form: BodyForm) -> None:
    assert view_body(message(body)).form is form


@given(st.binary(max_size=300))
def test_every_form_of_any_body_tells_the_truth(body: bytes) -> None:
    view = view_body(message(body))
    assert view.size_bytes == view.shown_bytes == len(body)
    assert base64.b64decode(view_body(message(body), "base64").text) == body
    rows = view_body(message(body), "hex").text.splitlines()
    digits = "".join(row[10:57] for row in rows)
    assert bytes.fromhex(digits) == body
    if BodyForm.TEXT in view.forms:
        assert view_body(message(body), "text").text.encode() == body


def test_a_form_that_would_lie_is_not_given() -> None:
    assert view_body(message(b"\x00"), "text").form is BodyForm.HEX
    assert view_body(message(b"x"), "<script>").form is BodyForm.TEXT


def test_cuts_are_shown() -> None:
    view = view_body(message(b"x" * (TEXT_BYTES_MAX + 1)))
    assert view.is_cut
    assert view.shown_bytes == TEXT_BYTES_MAX
    assert view_body(message(b"\x00" * (HEX_BYTES_MAX + 1))).is_cut


def test_a_compressed_body_is_unpacked_and_says_so() -> None:
    view = view_body(message(zlib.compress(b"hello"), sysflag.COMPRESSED))
    assert (view.text, view.compression, view.problem) == ("hello", "zlib", "")


def test_a_body_that_does_not_unpack_is_shown_as_it_is_with_the_reason() -> None:
    view = view_body(message(b"not zlib", sysflag.COMPRESSED))
    assert view.text == "not zlib"
    assert view.problem


def test_previews_are_one_short_line() -> None:
    assert preview(message(b'{"a":\n  1}')) == '{"a": 1}'
    assert preview(message(b"\x00\x01")) == "00 01"
    long = preview(message(("é" * 500).encode()))
    assert long.endswith("…")
    assert len(long) <= 120
