"""The URL path converter of names: topics, groups, client ids, brokers, message ids.

Clients choose these names freely: a client id or a group in a heartbeat may have a slash. A slash
in a path separates segments, also as %2F, because servers decode a path before routing; browsers
resolve the segments `.` and `..`; an empty segment matches no route. The converter escapes these
cases with a tilde, so each name has a URL, and each URL made by `reverse` returns the name.
"""

import re

#: Escapes by character. A tilde itself is escaped; otherwise two names could share a URL.
ESCAPES = {"/": "~2F", ".": "~2E", "~": "~7E"}
CHARACTERS = {escape: character for character, escape in ESCAPES.items()}
#: The path segment of the empty name.
EMPTY = "~"
ESCAPE = re.compile("|".join(CHARACTERS))


class NameConverter:
    """`<name:topic>` in a route: one path segment for any name.

    A tilde that begins no escape stands for itself: a path written by hand works as well.
    """

    regex = "[^/]+"

    def to_python(self, segment: str) -> str:
        """Return the name of a path segment."""
        if segment == EMPTY:
            return ""
        return ESCAPE.sub(lambda escape: CHARACTERS[escape[0]], segment)

    def to_url(self, name: str) -> str:
        """Return the path segment of a name, before percent-encoding."""
        if name in {".", ".."}:
            return name.replace(".", ESCAPES["."])
        return name.replace("~", ESCAPES["~"]).replace("/", ESCAPES["/"]) or EMPTY
