"""Names in URL paths: each name has a URL of one segment, and the URL returns the name."""

from urllib.parse import unquote, urlsplit

import pytest
from django.urls import resolve, reverse

from console.frame.names import NameConverter

NAMES = [
    "plain",
    "a/b",
    "/",
    "//x",
    "a%2Fb",
    "..",
    ".",
    "a..b",
    ";",
    "a;b",
    "?q=1",
    "#1",
    "a b",
    " ",
]
NAMES += [
    "",
    "~",
    "~2F",
    "~~2F",
    "~2~2F",
    "%RETRY%a/b",
    "名/字",
    "a\\b",
    "a\nb",
    "a+b&c",
    "edit",
    '"<',
]


@pytest.mark.parametrize("name", NAMES)
def test_a_url_returns_its_name(name: str) -> None:
    url = reverse("groups:client", args=["local", name, name])
    parts = urlsplit(url)
    assert not parts.query
    assert not parts.fragment
    segments = parts.path.split("/")
    # A browser removes the segments "." and "..", also percent-encoded.
    assert not {unquote(segment) for segment in segments[1:-1]} & {"", ".", ".."}
    match = resolve(unquote(url))
    assert match.view_name == "groups:client"
    assert match.kwargs == {"cluster": "local", "group": name, "client": name}


def test_names_with_different_characters_have_different_urls() -> None:
    assert len({NameConverter().to_url(name) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", ["a-b_c%d|9", "10.0.0.1@1234#5678", "DEFAULT"])
def test_usual_names_are_not_escaped(name: str) -> None:
    assert NameConverter().to_url(name) == name


def test_a_tilde_without_an_escape_stands_for_itself() -> None:
    assert NameConverter().to_python("a~b") == "a~b"
