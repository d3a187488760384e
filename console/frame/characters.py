"""Characters that a reader sees: the rule for names of accounts and for values of labels."""

import re
from typing import Final

#: Characters that `str.isprintable` accepts and a reader does not see: fillers, blanks, selectors.
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)


def is_visible(text: str) -> bool:
    """Return whether a reader sees every character of a text; a space counts as seen."""
    return text.isprintable() and not _UNSEEN.search(text)
