"""Compilation of filter expressions, with a cache of compiled expressions.

The cache saves a compilation per pull for consumers with the expression in each pull request. The
language is imported with the first expression: most brokers never filter by properties.
Compatible with RocketMQ's FilterFactory and the cache of SelectorParser.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from core_broker.errors import FilterSyntaxError
from core_broker.remoting.bodies import EXPRESSION_SQL92

if TYPE_CHECKING:
    from core_broker.filter.sql92 import Sql92Filter

#: Maximum cached compiled expressions; a large expression takes some megabytes.
COMPILED_CACHE_MAX = 32


def compile_filter(expression_type: str, expression: str) -> "Sql92Filter":
    """Compile an expression; raises FilterSyntaxError, also for an unknown expression type."""
    if expression_type != EXPRESSION_SQL92:
        raise FilterSyntaxError(f"Unknown filter type {expression_type!r}", expression, 0)
    compiled = _compiled(expression)
    if isinstance(compiled, FilterSyntaxError):
        raise compiled.with_traceback(None)
    return compiled


@lru_cache(maxsize=COMPILED_CACHE_MAX)
def _compiled(expression: str) -> "Sql92Filter | FilterSyntaxError":
    from core_broker.filter.sql92 import compile_sql92

    try:
        return compile_sql92(expression)
    except FilterSyntaxError as error:
        return error
