"""Java's .properties syntax, compatible with java.util.Properties, with line numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.config.property_files import Entry, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", [Entry("a", "1", 1)]),
        ("a = 1 \r\nb:2\rc 3", [Entry("a", "1 ", 1), Entry("b", "2", 2), Entry("c", "3", 3)]),
        ("# no\n ! no\n\n  a=b=c", [Entry("a", "b=c", 4)]),
        ("a=x\\\n   y\nb=1", [Entry("a", "xy", 1), Entry("b", "1", 3)]),
        ("a=x\\\\\nb=1", [Entry("a", "x\\", 1), Entry("b", "1", 2)]),
        ("a\\ b\\==\\u00e9\\t", [Entry("a b=", "é\t", 1)]),
        ("a=\\ud83d\\ude00", [Entry("a", "\U0001f600", 1)]),
        ("a=\\u12", [Entry("a", "\\u12", 1)]),
        ("a", [Entry("a", "", 1)]),
        ("a=1\na=2", [Entry("a", "1", 1), Entry("a", "2", 2)]),
        ("a=1\\", [Entry("a", "1", 1)]),
        ("a=x\\\n# y", [Entry("a", "x# y", 1)]),
        ("messageDelayLevel=1s 5s", [Entry("messageDelayLevel", "1s 5s", 1)]),
    ],
)
def test_reads_what_java_reads(text: str, expected: list[Entry]) -> None:
    assert parse_properties(text) == expected


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for entry in parse_properties(text):
        entry.value.encode("utf-8", "surrogatepass")
