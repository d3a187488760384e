"""Lines for people, JSON for programs."""

import io
import json
from collections.abc import Iterator

import pytest

from core_broker.mqadmin.output import Column, Output, Table, pretty
from core_broker.remoting.bodies import BrokerData, TopicRouteData

TABLE = Table(
    "%-6s  %4s",
    [Column("name", "#Name"), Column("count", "#N", lambda count: "-" if count is None else count)],
    header_layout="%-8s  %4s",
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_has_javas_widths_and_cuts_nothing_off() -> None:
    records = [{"name": "a", "count": 1}, {"name": "longer-name", "count": None}]
    assert list(TABLE.lines(records)) == ["#Name       #N", "a          1", "longer-name     -"]


def test_json_is_one_document_a_line_and_nothing_else() -> None:
    stream = io.StringIO()
    out = Output(stream, as_json=True)
    out.show_text("for people")
    out.show({"b": None, "a": "ü"}, ["for people"])
    out.show({"c": 1}, ["for people"])
    first, second = stream.getvalue().splitlines()
    assert json.loads(first) == {"a": "ü", "b": None}
    assert json.loads(second) == {"c": 1}


def test_json_output_does_not_read_the_lines() -> None:
    def lines() -> Iterator[str]:
        yield from ()
        raise AssertionError("nobody wants lines")

    Output(io.StringIO(), as_json=True).show({}, lines())


@pytest.mark.parametrize(
    ("stream", "written"), [(Terminal(), "\\x1b]0;x\\x07"), (io.StringIO(), "\x1b]0;x\x07")]
)
def test_control_characters_are_escaped_on_a_terminal(stream: io.StringIO, written: str) -> None:
    Output(stream, as_json=False).show(None, ["\x1b]0;x\x07"])
    assert stream.getvalue() == written + "\n"


def test_pretty_json_has_java_s_layout() -> None:
    route = TopicRouteData(broker_datas=[BrokerData(broker_name="b", broker_addrs={0: "h:1"})])
    text = pretty(route)
    assert '\t"brokerDatas":[\n\t\t{\n\t\t\t"brokerAddrs":{\n\t\t\t\t"0":"h:1"' in text
    assert "orderTopicConf" not in text
