"""Chinese meanings of broker settings: complete, compiled, with every name of the English text."""

import gettext
import re
from pathlib import Path

from django.utils.translation import override

from console.services.clusters import setting_docs
from tests.unit.console.test_translations import read_po

PO = setting_docs.LOCALE_DIR / "zh_Hans/LC_MESSAGES/settings.po"
#: Maximum number of new or changed meanings that the page shows in English.
MISSING_MAX = 8
#: Names of constants and codes.
CONSTANT = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")


def test_the_catalogue_has_the_meanings_of_the_document() -> None:
    entries = read_po(PO)
    assert not [entry.text for entry in entries if entry.fuzzy or not entry.translation]
    written = set(setting_docs.written().values())
    assert len(written) > 150
    missing = written - {entry.text for entry in entries}
    assert len(missing) <= MISSING_MAX, "run `manage.py translate` and fill what is empty"


def test_names_of_settings_and_constants_stay() -> None:
    keys = sorted(key for key in setting_docs.written() if re.search("[A-Z.]", key))
    wrong = {}
    for entry in read_po(PO):
        names = {each for each in keys if each in entry.text} | {*CONSTANT.findall(entry.text)}
        if lost := {each for each in names if each not in entry.translation}:
            wrong[entry.text] = lost
    assert not wrong


def test_the_compiled_catalogue_is_that_of_the_source_file() -> None:
    with Path(PO).with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for entry in read_po(PO):
        assert compiled.gettext(entry.text) == entry.translation


def test_meanings_are_in_the_language_of_the_reader() -> None:
    with override("zh-hans"):
        assert setting_docs.meanings()["flushDiskType"].endswith("在消息刷盘后确认。")
        assert "haTlsEnable" not in setting_docs.meanings(apache=True)
        assert "flushDiskType" in setting_docs.meanings(apache=True)
    with override("en"):
        assert setting_docs.meanings()["flushDiskType"].startswith("ASYNC_FLUSH acknowledges")
    with override(None):
        assert setting_docs.meanings()["flushDiskType"].startswith("ASYNC_FLUSH acknowledges")
