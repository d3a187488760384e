"""The words of a filter expression.

Keywords are recognised in any case, names keep theirs. Blanks and comments (-- to the end of the
line, /* to */) stand between words. One pattern is tried at each position and it cannot backtrack
over more than one word, so a hostile text costs no more than its length.
"""

import re
from typing import NamedTuple

from core_broker.errors import FilterSyntaxError

#: Longer expressions are refused before they are looked at.
EXPRESSION_CHARS_MAX = 32_768

KEYWORDS = frozenset({"NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"})

INTEGER, DECIMAL, STRING, NAME, END = "integer", "decimal", "string", "name", "end"

#: How many characters of a wrong word an error shows.
_SHOWN_CHARS_MAX = 20

_WORD = re.compile(
    r"""
    (?P<blank>   (?: [ \t\n\r\f]++ | --[^\n\r]*+ | /\*.*?\*/ )++ )
  | (?P<decimal> [0-9]++\.[0-9]*+(?:E[+-]?[0-9]++)? | \.[0-9]++(?:E[+-]?[0-9]++)?
               | [0-9]++E[+-]?[0-9]++ )
  | (?P<integer> (?: 0 | [1-9][0-9]*+ ) L? )
  | (?P<string>  '(?: '' | [^'] )*+' )
  | (?P<name>    [A-Z_$][A-Z0-9_$]*+ )
  | (?P<symbol>  <> | >= | <= | [=<>(),+-] )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL | re.ASCII,
)


class Token(NamedTuple):
    """One word: a kind for names and literals; for keywords and symbols the kind is the word."""

    kind: str
    text: str
    at: int


def tokens(expression: str) -> list[Token]:
    """Split an expression; the last token is END. Raises FilterSyntaxError."""
    if len(expression) > EXPRESSION_CHARS_MAX:
        raise FilterSyntaxError(
            f"The expression has {len(expression)} characters; {EXPRESSION_CHARS_MAX} are possible",
            expression,
            EXPRESSION_CHARS_MAX,
        )
    found: list[Token] = []
    at = 0
    while at < len(expression):
        match = _WORD.match(expression, at)
        if match is None:
            shown = expression[at : at + _SHOWN_CHARS_MAX]
            raise FilterSyntaxError(f"Lexical error: {shown!r} begins no word", expression, at)
        kind, text = str(match.lastgroup), match[0]
        if kind == "symbol":
            kind = text
        elif kind == NAME and text.upper() in KEYWORDS:
            kind = text.upper()
        if kind != "blank":
            found.append(Token(kind, text, at))
        at = match.end()
    found.append(Token(END, "<EOF>", len(expression)))
    return found
