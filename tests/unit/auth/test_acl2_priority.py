"""Which entry decides: against decisions of RocketMQ 5.3.3, and against a slow reference."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.auth.acl2.model import (
    PolicyEntry,
    Resource,
    ResourcePattern,
    ResourceType,
    RuleAction,
    RuleDecision,
)
from core_broker.auth.acl2.priority import decisive, decisive_in_java
from core_broker.auth.acl2.source_addresses import SourceAddresses

RESOURCES = {"L": "Topic:abc", "P": "Topic:ab*", "Q": "Topic:a*", "A": "Topic:*", "S": "*"}
DECISIONS = {"+": RuleDecision.ALLOW, "-": RuleDecision.DENY}
RECORDED = [
    tuple(line.split(" = "))
    for line in Path(__file__).with_name("priority-5.3.3.txt").read_text().splitlines()
    if not line.startswith("#")
]


def entry(mark: str) -> PolicyEntry:
    resource = Resource.parse(RESOURCES[mark[0]])
    assert resource is not None
    return PolicyEntry(resource, (RuleAction.GET,), SourceAddresses(), DECISIONS[mark[1]])


def slow_reference(entries: list[PolicyEntry]) -> RuleDecision:
    """The intended rule, said class by class instead of by a sort key."""
    literals = [each for each in entries if each.resource.pattern is ResourcePattern.LITERAL]
    prefixes = [each for each in entries if each.resource.pattern is ResourcePattern.PREFIXED]
    of_type = [
        each
        for each in entries
        if each.resource.pattern is ResourcePattern.ANY
        and each.resource.type is not ResourceType.ANY
    ]
    longest = max((len(each.resource.name) for each in prefixes), default=0)
    prefixes = [each for each in prefixes if len(each.resource.name) == longest]
    first = next(group for group in (literals, prefixes, of_type, entries) if group)
    denied = any(each.decision is RuleDecision.DENY for each in first)
    return RuleDecision.DENY if denied else RuleDecision.ALLOW


def test_java_mode_decides_as_a_java_broker() -> None:
    differing = [
        marks
        for marks, decision in RECORDED
        if decisive_in_java([entry(mark) for mark in marks.split()]).decision
        is not DECISIONS[decision]
    ]
    assert differing == []
    assert len(RECORDED) == 820


@given(
    st.lists(
        st.tuples(st.sampled_from([*RESOURCES]), st.sampled_from("+-")), min_size=1, max_size=40
    )
)
def test_the_intended_rule(marks: list[tuple[str, str]]) -> None:
    entries = [entry("".join(mark)) for mark in marks]
    assert decisive(entries).decision is slow_reference(entries)
    assert decisive_in_java(entries) in entries


@pytest.mark.parametrize(
    ("marks", "intended", "java"),
    [
        ("L+ P-", "+", "-"),  # Java: the later of literal and prefix
        ("P- L+", "+", "+"),
        ("P+ Q-", "+", "-"),  # Java: the shorter prefix
        ("Q- P+", "+", "-"),
        ("L- A+", "-", "+"),  # Java: an earlier Deny loses to Allow on all resources
        ("A+ L-", "-", "-"),
        ("S+ A-", "-", "-"),
        ("L+ L-", "-", "+"),
    ],
)
def test_where_the_orders_differ(marks: str, intended: str, java: str) -> None:
    entries = [entry(mark) for mark in marks.split()]
    assert decisive(entries).decision is DECISIONS[intended]
    assert decisive_in_java(entries).decision is DECISIONS[java]
