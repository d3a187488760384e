"""The frames recorded from Java RocketMQ, read out of golden/*.txt."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from struct import pack
from typing import Any

GOLDEN = Path(__file__).parent / "golden"

_TITLE = re.compile(r"## (\d+) (\w+) -> (\w+)")
_BODY = re.compile(r" body\((\d+)( bytes)?\): (.*)", re.DOTALL)


@dataclass(frozen=True)
class Recorded:
    """A recorded frame. `body` is None when the recorder kept only `start`, its first bytes."""

    source: str
    title: str
    request_code: int
    is_answer: bool
    header: dict[str, Any]
    start: bytes
    body: bytes | None

    def frame(self) -> bytes:
        """The recorded frame, with the whole body or the recorded start of the body."""
        header = json.dumps(self.header, separators=(",", ":")).encode()
        body = self.start if self.body is None else self.body
        return pack(">II", 4 + len(header) + len(body), len(header)) + header + body

    def __str__(self) -> str:
        return f"{self.source} {self.title} {'<-' if self.is_answer else '->'}"


def recorded() -> list[Recorded]:
    """All frames of both versions, in the order of the files."""
    return [frame for path in sorted(GOLDEN.glob("*.txt")) for frame in _read(path)]


def _read(path: Path) -> list[Recorded]:
    frames = []
    title, code = "", 0
    for line in path.read_text().split("\n"):
        if line.startswith("## "):
            match = _TITLE.match(line)
            assert match is not None, line
            title, code = line[3:], int(match.group(1))
        elif line.startswith(("-> ", "<- ")):
            header, end = json.JSONDecoder().raw_decode(line[3:])
            start, body = _body(line[3 + end :])
            frames.append(Recorded(path.stem, title, code, line[0] == "<", header, start, body))
    return frames


def _body(text: str) -> tuple[bytes, bytes | None]:
    match = _BODY.match(text)
    if match is None:
        assert not text, text
        return b"", b""
    size, is_hex, content = int(match.group(1)), match.group(2), match.group(3)
    if is_hex:
        start = bytes.fromhex(content.removeprefix("hex ").removesuffix("..."))
    else:
        start = content.removesuffix(" ...").encode()
    return start, start if len(start) == size else None
