"""Namespaces: several tenants on one cluster, told apart by a prefix of topics and groups. Pure.

    topic        ns%topic            %RETRY%group   %RETRY%ns%group
    group        ns%group            %DLQ%group     %DLQ%ns%group

Names of the system have none. Compatible with RocketMQ's NamespaceUtil.
"""

from core_broker.message.topics import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    is_system_group,
    is_system_topic,
)

NAMESPACE_SEPARATOR = "%"


def with_namespace(namespace: str, name: str) -> str:
    """A topic's or group's full name; a name that is full already stays as it is."""
    if not namespace or is_system_topic(name) or is_system_group(name):
        return name
    derived, bare = _split(name)
    if bare.startswith(namespace + NAMESPACE_SEPARATOR):
        return name
    return f"{derived}{namespace}{NAMESPACE_SEPARATOR}{bare}"


def without_namespace(namespace: str, name: str) -> str:
    """The name as the application knows it."""
    derived, bare = _split(name)
    prefix = namespace + NAMESPACE_SEPARATOR
    return derived + bare.removeprefix(prefix) if namespace else name


def _split(name: str) -> tuple[str, str]:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name
