"""The lexer: splits a filter expression into tokens.

Keywords are case-insensitive, names are case-sensitive. Blanks and comments (-- to the end of the
line, /* to */) separate tokens. One pattern is tried at each position, without backtracking over
more than one token, so the cost of a hostile text is linear in the length.
"""

import re
from typing import NamedTuple

from core_broker.errors import FilterSyntaxError

#: Maximum length of an expression, characters; checked before the lexing.
EXPRESSION_CHARS_MAX = 32_768

KEYWORDS = frozenset({"NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"})

INTEGER, DECIMAL, STRING, NAME, END = "integer", "decimal", "string", "name", "end"

#: Maximum characters of an invalid token in an error message.
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
    """One token. The kind of a keyword or symbol is the keyword (upper case) or symbol itself."""

    kind: str
    text: str
    at: int


def tokens(expression: str) -> list[Token]:
    """Split an expression; the last token is END. Raises FilterSyntaxError."""
    if len(expression) > EXPRESSION_CHARS_MAX:
        raise FilterSyntaxError(
            f"The expression has {len(expression)} characters, over {EXPRESSION_CHARS_MAX}",
            expression,
            EXPRESSION_CHARS_MAX,
        )
    result: list[Token] = []
    at = 0
    while at < len(expression):
        match = _WORD.match(expression, at)
        if match is None:
            shown = expression[at : at + _SHOWN_CHARS_MAX]
            raise FilterSyntaxError(f"Lexical error: {shown!r} begins no token", expression, at)
        kind, text = str(match.lastgroup), match[0]
        if kind == "symbol":
            kind = text
        elif kind == NAME and text.upper() in KEYWORDS:
            kind = text.upper()
        if kind != "blank":
            result.append(Token(kind, text, at))
        at = match.end()
    result.append(Token(END, "<EOF>", len(expression)))
    return result
