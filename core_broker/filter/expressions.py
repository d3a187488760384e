"""Compiling a filter expression of any type; the last ones are remembered.

Consumers that send their expression with each pull would have it compiled each time. Compatible
with RocketMQ's FilterFactory and the cache of SelectorParser.
"""

from functools import lru_cache

from core_broker.errors import FilterSyntaxError
from core_broker.filter.sql92 import Sql92Filter, compile_sql92
from core_broker.remoting.bodies import EXPRESSION_SQL92

#: Compiled expressions that are remembered; a large one takes some megabytes.
REMEMBERED_MAX = 32


def compile_filter(expression_type: str, expression: str) -> Sql92Filter:
    """Compile an expression; raises FilterSyntaxError, also for a type that there is not."""
    if expression_type != EXPRESSION_SQL92:
        raise FilterSyntaxError(f"There is no filter of type {expression_type!r}", expression, 0)
    compiled = _compiled(expression)
    if isinstance(compiled, FilterSyntaxError):
        raise compiled.with_traceback(None)
    return compiled


@lru_cache(maxsize=REMEMBERED_MAX)
def _compiled(expression: str) -> Sql92Filter | FilterSyntaxError:
    try:
        return compile_sql92(expression)
    except FilterSyntaxError as error:
        return error
