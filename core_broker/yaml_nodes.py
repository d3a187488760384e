"""YAML 1.1 documents as nodes with their lines, for files of access control and definitions.

A document is read into nodes, never into objects: no tag can create anything. Of the tags only
`!!org.apache.rocketmq.common.PlainAccessConfig` is accepted, on a map: RocketMQ 5.0 to 5.3.2 write
the tag. Aliases and merge keys are refused.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from core_broker.errors import FormattedError, FormattedText

#: Maximum nesting of a file; the format itself needs 4 levels.
DEPTH_MAX: Final = 16
#: Maximum keys, values, lists and maps of a file: 10,000 accounts with 20 permissions each. A node
#: costs about 40 microseconds and 1 KiB.
NODES_MAX: Final = 400_000
#: Version of YAML whose types RocketMQ's files have: `yes` is a boolean, `010` is 8.
YAML_VERSION: Final = (1, 1)
_STANDARD = "tag:yaml.org,2002:"
_ACCOUNT_TAG = _STANDARD + "org.apache.rocketmq.common.PlainAccessConfig"
_TYPES = frozenset(
    _STANDARD + name
    for name in ("str", "int", "float", "bool", "null", "timestamp", "map", "seq", "merge", "value")
)
#: Maximum digits of a counter or timestamp: a Java long has 19.
_DIGITS_MAX = 18
_DECIMAL = re.compile(r"0|[1-9][0-9]*")
_TRUE = frozenset({"y", "yes", "true", "on"})
_FALSE = frozenset({"n", "no", "false", "off"})


class YamlError(FormattedError):
    """A document, or a value in it, is not valid. The text quotes no secret."""


class _BoundedComposer(Composer):
    """Ends at the node after `nodes_max`, before any node more is built."""

    nodes_max = NODES_MAX
    remedy: str = "divide the accounts among several files below conf/acl"

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self._nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._nodes += 1
        if self._nodes > self.nodes_max:
            raise YamlError(
                "{line}more than {most} keys and values; {remedy}.",
                line=_line(self.parser.peek_event().start_mark.line),
                most=self.nodes_max,
                remedy=self.remedy,
            )
        return super().compose_node(parent, index)


def _composer(most: int, advice: str) -> type[Composer]:
    """ruamel makes the composer itself: the bounds are members of the class."""

    class Bounded(_BoundedComposer):
        nodes_max = most
        remedy = advice

    return Bounded


def compose(text: str, nodes_max: int | None = None, remedy: str = "") -> Node | None:
    """The root node of a document; None for an empty one. Raises YamlError with the line.

    `remedy` completes the error of a document with more than `nodes_max` (NODES_MAX) nodes.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.version = YAML_VERSION
    yaml.Composer = _composer(nodes_max or NODES_MAX, remedy or _BoundedComposer.remedy)
    yaml.max_depth = DEPTH_MAX
    yaml.composer.warn_double_anchors = False  # anchors are refused below
    try:
        root: Node | None = yaml.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = _line(mark.line) if mark is not None else ""
        # The problem of an alias quotes the alias, which may be an unquoted secret.
        problem = str(error.problem or error.context)
        if "alias" in problem:
            problem = FormattedText("a value begins with *; quote the value")
        raise YamlError("{line}no YAML: {problem}", line=line, problem=problem) from None
    except (LookupError, AssertionError):
        # ruamel looks up the types of a version without a check.
        raise YamlError("no YAML: the version of %YAML is not supported") from None
    except (YAMLError, ValueError, RecursionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise YamlError("{line}no YAML: {problem}", line="", problem=reason) from None
    if root is None or is_null(root):
        return None
    _check(root)
    return root


def line_of(node: Node) -> FormattedText:
    """`line N: `, the beginning of an error's text."""
    return _line(node.start_mark.line)


def _line(index: int) -> FormattedText:
    return FormattedText("line {number}: ", number=index + 1)


def is_null(node: Node) -> bool:
    """Whether the value is missing: empty, `~` or `null`."""
    return isinstance(node, ScalarNode) and _type(node) == "null"


def members(node: Node, name: str) -> Iterator[tuple[str, Node]]:
    """Keys and values of a map, in order. Raises YamlError for another node."""
    if not isinstance(node, MappingNode):
        raise YamlError("{line}{name} is no map of keys and values.", line=line_of(node), name=name)
    seen = set()
    for key, value in node.value:
        if not isinstance(key, ScalarNode) or key.value == "<<":
            raise YamlError("{line}a key of {name} is no text.", line=line_of(key), name=name)
        if key.value in seen:
            text = "{line}{name} has the key {key!r} twice."
            raise YamlError(text, line=line_of(key), name=name, key=key.value)
        seen.add(key.value)
        yield key.value, value


def items(node: Node, name: str) -> list[Node]:
    """The items of a list; none for a missing value. Raises YamlError for another node."""
    if is_null(node):
        return []
    if not isinstance(node, SequenceNode):
        text = "{line}{name} is no list; write each item after `- `."
        raise YamlError(text, line=line_of(node), name=name)
    return list(node.value)


def raw_text(node: Node, name: str) -> str:
    """The text of a value as written. Raises YamlError for a map or list."""
    if not isinstance(node, ScalarNode):
        raise YamlError("{line}{name} is no text.", line=line_of(node), name=name)
    return str(node.value)


def key_text(node: Node, name: str) -> tuple[str | None, str]:
    """The text of a key as RocketMQ 4.9.8 reads it, and a warning when other versions differ.

    Plain digits are the text of the number. Numbers in another notation have no common text in
    RocketMQ 4 and 5. Raises YamlError for them and for dates: the operator has to quote the value.
    """
    text = raw_text(node, name)
    kind = _type(node)
    if kind == "null":
        return None, ""
    if kind == "str" or (kind == "int" and _DECIMAL.fullmatch(text)):
        return text, ""
    if kind == "bool":
        return text, f"{line_of(node)}{name} is a boolean in YAML; quote the value."
    raise YamlError(
        "{line}{name} is read differently by RocketMQ 4 and 5 ({kind} in YAML 1.1); quote the "
        "value.",
        line=line_of(node),
        name=name,
        kind=kind,
    )


def boolean(node: Node, name: str) -> bool:
    """A boolean, also in quotes; a missing value is false. Raises YamlError for other texts."""
    text = raw_text(node, name).strip().lower()
    if is_null(node) or text in _FALSE:
        return False
    if text in _TRUE:
        return True
    raise YamlError("{line}{name} is neither true nor false.", line=line_of(node), name=name)


def integer(node: Node, name: str) -> int:
    """A decimal number. Raises YamlError for another text."""
    text = raw_text(node, name)
    if not _DECIMAL.fullmatch(text) or len(text) > _DIGITS_MAX:
        raise YamlError("{line}{name} is no number.", line=line_of(node), name=name)
    return int(text)


def _type(node: Node) -> str:
    """The YAML type of a node, without the common beginning of the tags."""
    return str(node.tag).removeprefix(_STANDARD)


def _check(node: Node) -> None:
    """Refuse anchors, hence aliases and endless structures, and all tags but one."""
    if node.anchor is not None:
        raise YamlError("{line}anchors and aliases are not supported.", line=line_of(node))
    tag = str(node.tag)
    if tag not in _TYPES and not (tag == _ACCOUNT_TAG and isinstance(node, MappingNode)):
        raise YamlError("{line}the tag {tag} is not supported.", line=line_of(node), tag=tag[:80])
    if isinstance(node, MappingNode):
        for key, value in node.value:
            _check(key)
            _check(value)
    elif isinstance(node, SequenceNode):
        for item in node.value:
            _check(item)
