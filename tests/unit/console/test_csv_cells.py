"""CSV cells: texts of clients never become formulas."""

import csv

import pytest

from console.frame.csv_cells import csv_line


@pytest.mark.parametrize(
    "text", ["=1+1", " =1+1", "+1", "-1", "@SUM", "\tx", "\rx", "\nx", "|x", "%x"]
)
def test_a_text_like_a_formula_gets_an_apostrophe(text: str) -> None:
    [cells] = csv.reader([csv_line([text])])
    assert cells == [f"'{text}"]


def test_other_cells_stay() -> None:
    assert csv_line(["a=1", -5, None, 'say "hi"']) == 'a=1,-5,,"say ""hi"""\r\n'
