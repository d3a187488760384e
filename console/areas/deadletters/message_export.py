"""Export of dead letters: JSON Lines or CSV; bodies as in exports of messages."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from console.areas.deadletters.states import DeadLetter, dead_letters
from console.areas.messages.export_files import body_cells
from console.frame.csv_cells import csv_line
from console.gateway import Cluster
from console.gateway.dead_letters.search import DeadLetterFilter, search

#: Maximum rows of a file. A time filter splits a larger export.
EXPORT_DEAD_LETTERS_MAX: Final = 10_000
PAGE_DEAD_LETTERS: Final = 200
FORMATS: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
COLUMNS: Final = (
    "msg_id",
    "offset_msg_id",
    "died_ms",
    "born_ms",
    "origin_topic",
    "tags",
    "keys",
    "deliveries",
    "state",
    "body",
    "body_encoding",
    "properties",
)


def exported(cluster: Cluster, group: str, wanted: DeadLetterFilter, kind: str) -> Iterator[bytes]:
    """Chunks of the file, newest dead letter first.

    The first page is read before the function returns, so that an unknown group raises an error
    in place of an empty file.
    """
    first = cluster.ask(search, group, wanted, None, PAGE_DEAD_LETTERS).value
    return _pieces(cluster, group, wanted, kind, first)


def _pieces(
    cluster: Cluster, group: str, wanted: DeadLetterFilter, kind: str, page: Any
) -> Iterator[bytes]:
    if kind == "csv":
        yield csv_line(COLUMNS).encode()
    count = 0
    while True:
        for letter in dead_letters(cluster, page.rows):
            if count >= EXPORT_DEAD_LETTERS_MAX:
                return
            count += 1
            row = _row(letter)
            yield (
                csv_line([_cell(row[name]) for name in COLUMNS]).encode()
                if kind == "csv"
                else msgspec.json.encode(row) + b"\n"
            )
        if not page.next_cursor:
            return
        page = cluster.ask(search, group, wanted, page.next_cursor, PAGE_DEAD_LETTERS).value


def file_name(group: str, kind: str) -> str:
    """A portable file name: special characters of the group become underscores."""
    return f"dead-letters-{re.sub('[^A-Za-z0-9_-]', '_', group)[:100]}.{kind}"


def _row(letter: DeadLetter) -> dict[str, Any]:
    message = letter.ref.message
    body, encoding = body_cells(message, letter.decoder)
    return {
        "msg_id": message.msg_id,
        "offset_msg_id": message.offset_msg_id,
        "died_ms": message.store_timestamp,
        "born_ms": message.born_timestamp,
        "origin_topic": letter.origin,
        "tags": message.tags or "",
        "keys": list(message.keys),
        "deliveries": message.reconsume_times,
        "state": letter.state.value,
        "body": body,
        "body_encoding": encoding,
        "properties": dict(message.properties),
    }


def _cell(value: Any) -> str:
    if isinstance(value, list):
        value = " ".join(value)
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else str(value)
