"""The SQL92 filter language: conditions over message properties.

    color = 'red' AND (weight BETWEEN 1 AND 10 OR discount IS NOT NULL)

    lexer.py      text -> tokens with positions
    syntax.py     the nodes of an expression
    parser.py     tokens -> nodes, with RocketMQ's compile-time checks
    values.py     conversion of property texts to numbers and booleans
    compiler.py   nodes -> a function of a message's properties

An expression is true, false or unknown; only true delivers the message. Compatible with RocketMQ
4.9.8's SelectorParser and org.apache.rocketmq.filter.expression, with one exception: text after a
complete expression is an error. RocketMQ ignores the text, possibly half of a filter.
"""

from core_broker.filter.sql92.compiler import Sql92Filter, compile_sql92
from core_broker.filter.sql92.lexer import EXPRESSION_CHARS_MAX
from core_broker.filter.sql92.parser import NESTING_MAX, NODES_MAX

__all__ = ["EXPRESSION_CHARS_MAX", "NESTING_MAX", "NODES_MAX", "Sql92Filter", "compile_sql92"]
