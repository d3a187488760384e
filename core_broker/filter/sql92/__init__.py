"""The SQL92 filter language: which messages a consumer wants, by their properties.

    color = 'red' AND (weight BETWEEN 1 AND 10 OR discount IS NOT NULL)

    lexer.py      text -> tokens with their positions
    syntax.py     the nodes of an expression
    parser.py     tokens -> nodes, with every check that RocketMQ makes before a message comes
    values.py     how the text of a property becomes a number or a truth value
    compiler.py   nodes -> a function of a message's properties

An expression is true, false or unknown; only true delivers the message. Compatible with RocketMQ
4.9.8's SelectorParser and org.apache.rocketmq.filter.expression, except that text behind a complete
expression is an error here: RocketMQ ignores it, and with it half of a filter.
"""

from core_broker.filter.sql92.compiler import Sql92Filter, compile_sql92
from core_broker.filter.sql92.lexer import EXPRESSION_CHARS_MAX
from core_broker.filter.sql92.parser import NESTING_MAX, NODES_MAX

__all__ = ["EXPRESSION_CHARS_MAX", "NESTING_MAX", "NODES_MAX", "Sql92Filter", "compile_sql92"]
