"""Indented XML. Documents with a DOCTYPE are refused because of entity expansion attacks."""

from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

DEPTH_MAX = 100
INDENT = "  "


def indented(text: str) -> str:
    """The document with a line per element; raises ValueError for invalid XML."""
    writer = _Writer()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = writer.start
    parser.EndElementHandler = writer.end
    parser.CharacterDataHandler = writer.text
    parser.CommentHandler = writer.comment
    parser.StartDoctypeDeclHandler = writer.refuse
    try:
        # Parsed as text: the body is already decoded, so the encoding declaration is ignored.
        parser.Parse(text, True)
    except expat.ExpatError as fault:
        raise ValueError(str(fault)) from fault
    return "\n".join(writer.lines)


class _Writer:
    """Collects lines from parser events."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0
        #: Index of the line of an open element without children; -1 for none.
        self._opened = -1

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._depth >= DEPTH_MAX:
            raise ValueError("nested too deep")
        inside = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
        self.lines.append(f"{INDENT * self._depth}<{name}{inside}>")
        self._opened = len(self.lines) - 1
        self._depth += 1

    def end(self, name: str) -> None:
        self._depth -= 1
        if self._opened == len(self.lines) - 1:
            line = self.lines[-1]
            self.lines[-1] = f"{line[:-1]}/>" if line.endswith(">") else f"{line}</{name}>"
        else:
            self.lines.append(f"{INDENT * self._depth}</{name}>")
        self._opened = -1

    def text(self, text: str) -> None:
        if not text.strip():
            return
        if self._opened == len(self.lines) - 1:
            self.lines[-1] += escape(text)
        else:
            self.lines.append(INDENT * self._depth + escape(text.strip()))

    def comment(self, text: str) -> None:
        self.lines.append(f"{INDENT * self._depth}<!--{text}-->")
        self._opened = -1

    def refuse(self, *_doctype: object) -> None:
        raise ValueError("DOCTYPE is not supported")
