"""Namespaces: a prefix of topics and groups separates several tenants of a cluster. Pure.

    topic        ns%topic            %RETRY%group   %RETRY%ns%group
    group        ns%group            %DLQ%group     %DLQ%ns%group

System topics and system groups have no namespace. Compatible with RocketMQ's NamespaceUtil.
"""

from core_broker.message.topics import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    is_system_group,
    is_system_topic,
)

NAMESPACE_SEPARATOR = "%"


def with_namespace(namespace: str, name: str) -> str:
    """The full name of a topic or group; a full name stays unchanged."""
    if not namespace or is_system_topic(name) or is_system_group(name):
        return name
    derived, bare = _split(name)
    if bare.startswith(namespace + NAMESPACE_SEPARATOR):
        return name
    return f"{derived}{namespace}{NAMESPACE_SEPARATOR}{bare}"


def without_namespace(namespace: str, name: str) -> str:
    """The name without the namespace, as applications use the name."""
    derived, bare = _split(name)
    prefix = namespace + NAMESPACE_SEPARATOR
    return derived + bare.removeprefix(prefix) if namespace else name


def _split(name: str) -> tuple[str, str]:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name
