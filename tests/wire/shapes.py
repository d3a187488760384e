"""The shape of a body: members and their types, without values."""

import re
from typing import Any

from core_broker.errors import ProtocolError
from core_broker.remoting import fastjson

#: Members with data as keys: names of topics, groups, queues, brokers.
TABLES = frozenset(
    {
        *("offsetTable", "topicConfigTable", "subscriptionGroupTable", "brokerAddrTable"),
        *("clusterAddrTable", "brokerAddrs", "subscriptionTable", "mqTable", "statusTable"),
        *("filterServerTable", "topicQueueMappingDetailMap", "forbiddenTable"),
    }
)
_NAME = re.compile(rb'"([a-z]\w*)":')

Shape = Any


def shape_of(body: bytes) -> Shape:
    """The shape of a whole body; the word "binary" for a body that is not JSON."""
    try:
        return _shape(fastjson.loads(body))
    except (ProtocolError, UnicodeDecodeError):
        return "binary" if body else "empty"


def names_in(body: bytes) -> set[str]:
    """The members in the recorded start of a body."""
    names = {name.decode() for name in _NAME.findall(body)}
    # One for each level that had messages.
    return {name for name in names if not name.startswith("scheduleMessageOffset_")}


def differences(ours: Shape, theirs: Shape, path: str = "") -> list[str]:
    """Differences between two shapes; an empty list or table matches any content."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = []
        if "*" in ours and "*" in theirs:
            return differences(ours["*"], theirs["*"], f"{path}.*")
        if not (ours and theirs):
            return []
        for name in sorted(ours.keys() | theirs.keys()):
            if name not in ours:
                found.append(f"-{path}.{name}")
            elif name not in theirs:
                found.append(f"+{path}.{name}")
            else:
                found += differences(ours[name], theirs[name], f"{path}.{name}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list):
        return differences(ours[0], theirs[0], f"{path}[]") if ours and theirs else []
    return [] if ours == theirs else [f"{path}: {theirs} is {ours} here"]


def _shape(value: Any, name: str = "") -> Shape:
    if isinstance(value, dict):
        if name in TABLES or not all(isinstance(key, str) and not key.isdigit() for key in value):
            first = next(iter(value.values()), None)
            return {"*": _shape(first)} if value else {}
        return {key: _shape(member, key) for key, member in value.items()}
    if isinstance(value, list):
        return [_shape(value[0])] if value else []
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return "number" if isinstance(value, (int, float)) else "text"
