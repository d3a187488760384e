"""Export of a list: button, form, job in a real worker, download."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Gantry

JOB_MS = 60_000


@pytest.mark.must_beat(36)
def test_a_searched_list_is_downloaded(gantry: Gantry, page: Page, tmp_path: Path) -> None:
    page.goto(gantry.page("topics/?type=all&ordering=-name"))
    page.get_by_label("Search topics").fill("_topic")
    expect(page).to_have_url(re.compile("q=_topic"))
    shown = page.locator("#rows td.name a")
    expect(shown.filter(has_not_text="_topic")).to_have_count(0)
    names = shown.all_inner_texts()
    page.get_by_role("link", name="Export").click()
    expect(page.get_by_role("textbox", name="Search", exact=True)).to_have_value("_topic")
    page.get_by_label("Format").select_option("csv")
    page.get_by_role("button", name="Export").click()
    with page.expect_download(timeout=JOB_MS) as download:
        page.get_by_role("link", name="topics.csv").click(timeout=JOB_MS)
    file = tmp_path / "topics.csv"
    download.value.save_as(file)
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["name"] for row in rows] == names
    assert names == sorted(names, key=str.casefold, reverse=True)
    assert names
