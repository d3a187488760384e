"""The documentation site below /docs/: files of the folder alone, or the way to another address."""

import gzip
import os
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(tmp_path: Path, settings: Settings) -> Path:
    """A site of two pages, and a file outside of its folder."""
    folder = tmp_path / "site"
    (folder / "zh").mkdir(parents=True)
    (folder / "index.html").write_text("<h1>English</h1>")
    (folder / "zh" / "index.html").write_text("<h1>中文</h1>")
    (folder / ".hidden").write_text("secret")
    (tmp_path / "secret.txt").write_text("secret")
    settings.DOCUMENTATION = str(folder)
    return folder


def test_the_start_is_in_the_language_of_the_reader(client: Client, site: Path) -> None:
    assert client.get("/docs/").headers["Location"] == "/docs/index.html"
    chinese = client.get("/docs/", headers={"Accept-Language": "zh-CN"})
    assert chinese.headers["Location"] == "/docs/zh/index.html"


def test_a_page_needs_no_sign_in_and_has_the_content_policy(client: Client, site: Path) -> None:
    answer = client.get("/docs/zh/index.html")
    assert answer.content.decode() == "<h1>中文</h1>"
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    since = {"If-Modified-Since": answer.headers["Last-Modified"]}
    assert client.get("/docs/zh/index.html", headers=since).status_code == 304
    assert client.head("/docs/index.html").status_code == 200
    assert client.post("/docs/index.html").status_code in {403, 405}


def test_a_file_is_compressed_and_sent_once_until_it_changes(client: Client, site: Path) -> None:
    index = site / "search_index.json"
    index.write_text("words " * 1_000)
    plain = client.get("/docs/search_index.json")
    packed = client.get("/docs/search_index.json", headers={"Accept-Encoding": "gzip, br"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content == index.read_bytes()
    assert "Content-Encoding" not in plain.headers
    assert "Accept-Encoding" in plain.headers["Vary"]
    assert "max-age" in plain.headers["Cache-Control"]
    known = {"If-None-Match": plain.headers["ETag"]}
    assert client.get("/docs/search_index.json", headers=known).status_code == 304
    index.write_text("other words")
    os.utime(index, ns=(0, 1))
    assert client.get("/docs/search_index.json", headers=known).content == b"other words"


@pytest.mark.parametrize(
    "name",
    [
        *("absent.html", "zh", "zh/", ".hidden", "../secret.txt", "zh/../../secret.txt"),
        *("%2e%2e/secret.txt", "..%2fsecret.txt", "/etc/passwd", "zh//index.html", "a" * 5000),
    ],
)
def test_only_files_of_the_site_are_served(client: Client, site: Path, name: str) -> None:
    answer = client.get(f"/docs/{name}")
    assert answer.status_code == 404
    assert b"secret" not in answer.content.replace(b"secret.txt", b"")


def test_without_a_site_the_page_says_how_to_build_it(
    client: Client, tmp_path: Path, settings: Settings
) -> None:
    settings.DOCUMENTATION = str(tmp_path)
    answer = client.get("/docs/")
    assert answer.status_code == 200
    assert "make site" in answer.content.decode()
    assert client.get("/docs/index.html").status_code == 404


def test_an_address_takes_the_place_of_the_folder(client: Client, settings: Settings) -> None:
    settings.DOCUMENTATION = "https://docs.example.org/gantry/"
    assert client.get("/docs/").headers["Location"] == "https://docs.example.org/gantry/"
