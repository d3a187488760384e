"""Static files: from memory, compressed once, kept by browsers, never from outside the folders."""

import gzip

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage

from console.web.static_files import answer

STYLE = "vendor/tabler/css/tabler.min.css"


def ask(name: str, *, method: str = "GET", query: str = "", **headers: str):
    scope = {
        "method": method,
        "query_string": query.encode(),
        "headers": [
            (key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()
        ],
    }
    status, found, body = answer(scope, name)
    return status, {key.decode(): value.decode() for key, value in found}, body


def test_a_file_is_compressed_for_those_who_can_read_that() -> None:
    _status, headers, plain = ask(STYLE)
    status, packed_headers, packed = ask(STYLE, accept_encoding="gzip, br")
    assert status == 200
    assert packed_headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed) == plain
    assert len(packed) * 5 < len(plain)
    assert "content-encoding" not in headers
    assert headers["content-type"] == "text/css; charset=utf-8"


def test_an_address_with_the_digest_may_be_kept_for_ever() -> None:
    query = staticfiles_storage.url(STYLE).partition("?")[2]
    assert "immutable" in ask(STYLE, query=query)[1]["cache-control"]
    assert "immutable" not in ask(STYLE)[1]["cache-control"]
    assert "immutable" not in ask(STYLE, query="v=old")[1]["cache-control"]


def test_a_file_that_is_known_is_not_sent_again() -> None:
    etag = ask(STYLE)[1]["etag"]
    status, _headers, body = ask(STYLE, if_none_match=etag)
    assert (status, body) == (304, b"")


def test_head_sends_no_body_and_other_methods_are_refused() -> None:
    status, headers, body = ask(STYLE, method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 100_000
    assert ask(STYLE, method="POST")[0] == 405


@pytest.mark.parametrize(
    "name",
    [
        "",
        "absent.css",
        "vendor/",
        "vendor",
        "../console/settings.py",
        "vendor/../../console/settings.py",
        "/etc/passwd",
        "//etc/passwd",
        "vendor/tabler/css/tabler.min.css/",
        "a\x00b",
        "a" * 5000,
    ],
)
def test_hostile_names_find_nothing(name: str) -> None:
    assert ask(name)[0] == 404


def test_an_address_without_a_file_is_left_as_it_is() -> None:
    assert staticfiles_storage.url("absent.css") == "/static/absent.css"
