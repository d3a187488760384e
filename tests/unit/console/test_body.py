"""Presentation of bodies: no bytes as text, no silent truncation."""

import base64
import hashlib
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.areas.messages.body import HEX_BYTES_MAX, TEXT_BYTES_MAX, BodyForm, preview, view_body
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
    if BodyForm.TEXT in view.forms and view.encoding in {"ASCII", "UTF-8"}:
        assert view_body(message(body), "text").text.encode() == body


@pytest.mark.parametrize(
    ("body", "form", "encoding"),
    [
        (b"<a/>", BodyForm.XML, "ASCII"),
        ("<订单/>".encode(), BodyForm.XML, "UTF-8"),
        (b"<a>", BodyForm.TEXT, "ASCII"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', BodyForm.TEXT, "ASCII"),
        (b"<a>" * 200 + b"</a>" * 200, BodyForm.TEXT, "ASCII"),
        (b"\xef\xbb\xbfhello", BodyForm.TEXT, "UTF-8 with a byte order mark"),
        ("\ufeffhello".encode("utf-16-le"), BodyForm.TEXT, "UTF-16 LE"),
        ("\ufeffhello".encode("utf-16-be"), BodyForm.TEXT, "UTF-16 BE"),
        ("hello".encode("utf-16-be"), BodyForm.HEX, "binary"),
        (b"\x89PNG\r\n\x1a\n", BodyForm.HEX, "binary"),
    ],
)
def test_the_encoding_is_named(body: bytes, form: BodyForm, encoding: str) -> None:
    view = view_body(message(body))
    assert (view.form, view.encoding) == (form, encoding)
    assert view.sha256 == hashlib.sha256(body).hexdigest()


def test_xml_is_indented_and_keeps_what_it_says() -> None:
    body = b'<o id="1&amp;2"><!-- note --><n>5 &lt; 6</n><e/>tail</o>'
    shown = view_body(message(body)).text
    assert shown.splitlines() == [
        '<o id="1&amp;2">',
        "  <!-- note -->",
        "  <n>5 &lt; 6</n>",
        "  <e/>",
        "  tail",
        "</o>",
    ]


def test_a_tree_shows_what_was_sent_and_runs_nothing() -> None:
    evil = "<script>alert(1)</script>"
    body = f'{{"n": 1.00, "n": 12345678901234567890, "{evil}": ["{evil}", null, true, {{}}, []]}}'
    tree = str(view_body(message(body.encode()), "tree").tree)
    assert evil not in tree
    assert tree.count("&lt;script&gt;") == 2
    assert "1.00" in tree
    assert "12345678901234567890" in tree
    assert tree.count('<span class="key">n</span>') == 2


@pytest.mark.parametrize(
    "body",
    [b'["\\ud800"]', b'{"\\ud800": 1}', b"[NaN]", b'["a', b"[1e999]", b"[" + b"9" * 9_000 + b"]"],
)
def test_odd_json_is_shown_and_can_be_sent_to_a_browser(body: bytes) -> None:
    for form in ("tree", "json", "text"):
        view = view_body(message(body), form)
        assert (str(view.tree) + view.text).encode()


def test_a_large_tree_is_cut_and_says_so() -> None:
    body = json.dumps(list(range(50_000))).encode()
    view = view_body(message(body), "tree")
    assert view.tree_is_cut
    assert "more are not shown" in view.tree
    assert len(view.tree) < 500_000
    deep = json.dumps([[[[[[[{"a": [1] * 100}]]]]]]] * 200).encode()
    assert view_body(message(deep), "tree").tree_is_cut


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    )
)
def test_any_document_has_a_tree(document: object) -> None:
    body = json.dumps([document]).encode()
    assert view_body(message(body), "tree").tree


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
