"""Name patterns with `*` for any characters. Pure."""

ANYTHING = "*"


def fits(pattern: str, name: str) -> bool:
    """Compare in linear time per `*`: no regular expression, so no pattern is slow."""
    first, *rest = pattern.split(ANYTHING)
    if not rest:
        return pattern == name
    *middle, last = rest
    if not name.startswith(first) or len(name) < len(first) + len(last):
        return False
    position, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return name.endswith(last)
