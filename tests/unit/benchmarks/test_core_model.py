"""The model of many brokers: the limits, and the section of the page."""

from benchmarks.core_model import COUNTS, HEADING, KEPT, RATE, limits, section
from tests.support.source_tree import ROOT


def test_the_smallest_limit_decides() -> None:
    assert limits(1)["cores"] == RATE
    assert limits(4)["cores"] == 4 * round(RATE * KEPT)
    rows = [line for line in section().splitlines() if line.startswith("| ")][1:]
    assert [int(row.split(" | ")[0].strip("| ")) for row in rows] == list(COUNTS)
    for count, row in zip(COUNTS, rows, strict=True):
        assert f"**{min(limits(count).values()):,}**" in row


def test_the_page_has_the_model_and_calls_it_one() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert section() in page
    assert "**This is a model, not a measurement.**" in page.partition(HEADING)[2]
