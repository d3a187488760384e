"""Which of several matching entries decides.

Intended order, and the order of RocketMQ after 5.3.3: a literal name, then the longest prefix, then
all resources of the type, then `*`; Deny before Allow.

RocketMQ 5.3.0 to 5.3.3 sort the entries with an inconsistent comparison, so that the result depends
on the order of creation: of a literal name and a prefix the later one decides, and of two prefixes
the shorter one. `decisive_in_java` repeats comparison and sort of AuthorizationHandlerImpl and
java.util.List; with more than 31 matching entries of one policy Java sorts in runs, and may decide
differently.
"""

from collections.abc import Sequence

from core_broker.auth.acl2.model import PolicyEntry, ResourcePattern, ResourceType, RuleDecision

_PATTERN_ORDER = {
    ResourcePattern.LITERAL: 0,
    ResourcePattern.PREFIXED: 1,
    ResourcePattern.ANY: 2,
}


def decisive(entries: Sequence[PolicyEntry]) -> PolicyEntry:
    """Return the deciding entry of at least one matching entry, in the intended order."""
    return min(entries, key=_rank)


def _rank(entry: PolicyEntry) -> tuple[bool, int, int, bool]:
    resource = entry.resource
    return (
        resource.type is ResourceType.ANY,
        _PATTERN_ORDER[resource.pattern],
        -len(resource.name),
        entry.decision is RuleDecision.ALLOW,
    )


def decisive_in_java(entries: Sequence[PolicyEntry]) -> PolicyEntry:
    """Return the entry that decides in RocketMQ 5.3.3."""
    ordered = list(entries)
    begin = _sorted_run(ordered)
    for index in range(begin, len(ordered)):
        entry, low, high = ordered[index], 0, index
        while low < high:
            middle = (low + high) // 2
            if _java_order(entry, ordered[middle]) < 0:
                high = middle
            else:
                low = middle + 1
        ordered.insert(low, ordered.pop(index))
    return ordered[0]


def _sorted_run(entries: list[PolicyEntry]) -> int:
    """Bring the first run in ascending order as Java's TimSort does; return its length."""
    count = len(entries)
    if count < 2:
        return count
    end = 2
    if _java_order(entries[1], entries[0]) < 0:
        while end < count and _java_order(entries[end], entries[end - 1]) < 0:
            end += 1
        entries[:end] = entries[end - 1 :: -1]
    else:
        while end < count and _java_order(entries[end], entries[end - 1]) >= 0:
            end += 1
    return end


def _java_order(first: PolicyEntry, second: PolicyEntry) -> int:
    one, other = first.resource, second.resource
    if one.type is not other.type:
        return 1 if one.type is ResourceType.ANY else -1
    if one.pattern is not other.pattern:
        if one.pattern is not ResourcePattern.ANY:
            return -1
    elif one.pattern is ResourcePattern.PREFIXED and len(one.name) != len(other.name):
        return -1 if len(one.name) < len(other.name) else 1
    if first.decision is RuleDecision.DENY:
        return 1
    return -1 if second.decision is RuleDecision.DENY else 0
