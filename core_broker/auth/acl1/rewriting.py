"""Changes to the text of an access control file that keep comments, order and layout.

All scalars are text during a change: `010` stays `010`. New values that YAML 1.1 reads as another
type are quoted. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import SingleQuotedScalarString
from ruamel.yaml.tag import Tag

from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.reading import ACCOUNT_KEYS, ACCOUNTS, DATA_VERSION, WHITE_LIST
from core_broker.remoting.bodies import DataVersion
from core_broker.yaml_nodes import YAML_VERSION, compose

#: Line width of the output, characters; no line is folded.
_WIDTH = 1 << 20
_TEXT: Final = Tag(suffix="tag:yaml.org,2002:str")

#: An account as written: texts, lists of texts, or booleans, by key.
AccountValues = Mapping[str, str | bool | Sequence[str]]


class _TextResolver(VersionedResolver):
    """Resolves every untagged scalar as text."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Tag:
        if kind is ScalarNode:
            return _TEXT
        tag: Tag = super().resolve(kind, value, implicit)
        return tag


def put_account(text: str, values: AccountValues, version: DataVersion) -> str:
    """Merge an account into a file: given keys replace, other keys stay; a new one comes last."""

    def change(root: CommentedMap) -> None:
        accounts = _list_of(root, ACCOUNTS)
        account = _find(accounts, str(values["accessKey"]))
        if account is None:
            account = CommentedMap()
            accounts.append(account)
        for key in ACCOUNT_KEYS:
            if key in values:
                account[key] = _node(values[key])

    return _changed(text, change, version)


def drop_account(text: str, access_key: str, version: DataVersion) -> str:
    """Remove an account from a file; its comments go with the account."""

    def change(root: CommentedMap) -> None:
        accounts = _list_of(root, ACCOUNTS)
        account = _find(accounts, access_key)
        if account is None:
            raise RulesError(f"The file has no account {access_key}.")
        accounts.remove(account)

    return _changed(text, change, version)


def put_white_list(text: str, patterns: Sequence[str], version: DataVersion) -> str:
    """Replace the global white list of a file."""

    def change(root: CommentedMap) -> None:
        root[WHITE_LIST] = _node(patterns)

    return _changed(text, change, version)


def _changed(text: str, change: Callable[[CommentedMap], None], version: DataVersion) -> str:
    """Apply a change; `text` is a file that `read_acl_file` accepts."""
    yaml = YAML()
    yaml.Resolver = _TextResolver
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    _keep_layout(yaml, text)
    root = yaml.load(text)
    if not isinstance(root, CommentedMap):  # an empty file, or only comments
        root = CommentedMap()
        beginning = text if not text or text.endswith("\n") else text + "\n"
    else:
        beginning = ""
    change(root)
    numbers = {"counter": str(version.counter), "timestamp": str(version.timestamp)}
    root[DATA_VERSION] = CommentedSeq([CommentedMap(numbers)])
    out = StringIO()
    yaml.dump(root, out)
    return beginning + out.getvalue()


def _keep_layout(yaml: YAML, text: str) -> None:
    """Indent the dashes of lists as the first list of the file does."""
    offset = 0
    root = compose(text)
    for key, value in root.value if isinstance(root, MappingNode) else ():
        if isinstance(value, SequenceNode) and not value.flow_style:
            offset = max(0, value.start_mark.column - key.start_mark.column)
            break
    yaml.indent(mapping=2, sequence=offset + 2, offset=offset)


def _list_of(root: CommentedMap, name: str) -> CommentedSeq:
    if not isinstance(root.get(name), CommentedSeq):  # missing, or without a value
        root[name] = CommentedSeq()
    found: CommentedSeq = root[name]
    return found


def _find(accounts: CommentedSeq, access_key: str) -> CommentedMap | None:
    return next((each for each in accounts if str(each.get("accessKey")) == access_key), None)


def _node(value: str | bool | Sequence[str]) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _scalar(value)
    items = CommentedSeq([_scalar(item) for item in value])
    if not items:
        items.fa.set_flow_style()  # []
    return items


def _scalar(text: str) -> str:
    """A text that every YAML 1.1 reader reads as this text."""
    resolver = VersionedResolver(version=YAML_VERSION)
    tag = resolver.resolve(ScalarNode, text, (True, False))
    return text if str(tag) == str(_TEXT) else SingleQuotedScalarString(text)
