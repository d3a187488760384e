"""Entries of access control lists, as values and as lines of text.

    Allow Pub,Sub on Topic:orders*
    Deny All on Group:billing from 10.0.0.0/8,::1
    Default Allow Sub on Topic:*

An entry is identified by policy type and resource: a broker replaces the entry with the same
resource. Compatible with PolicyEntryInfo of RocketMQ 5.3.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo

ACTIONS: Final = ("All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List")
RESOURCE_TYPES: Final = ("Topic", "Group", "Cluster", "Namespace")
DECISIONS: Final = ("Allow", "Deny")
POLICY_TYPES: Final = ("Custom", "Default")

#: Limits of a Gantry broker: entries of a user, addresses of an entry, characters of a name.
ENTRIES_MAX: Final = 1_000
SOURCES_MAX: Final = 256
NAME_CHARS_MAX: Final = 255
#: Characters of an invalid text that an error quotes.
QUOTED_CHARS_MAX: Final = 80

_LINE = re.compile(
    r"(?:(?P<policy>Custom|Default)\s+)?(?P<decision>\S+)\s+(?P<actions>\S+)\s+on\s+"
    r"(?P<resource>.+?)(?:\s+from\s+(?P<sources>\S+))?",
    re.IGNORECASE,
)


class EntryError(ValueError):
    """An invalid entry; the argument is a lazy translation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A rule: actions on a resource from source addresses (none: from everywhere)."""

    resource: str
    actions: tuple[str, ...]
    decision: str
    source_ips: tuple[str, ...] = ()
    policy_type: str = "Custom"

    @property
    def key(self) -> str:
        """Policy type and resource; the type Custom is not named."""
        is_custom = self.policy_type == "Custom"
        return self.resource if is_custom else f"{self.policy_type} {self.resource}"

    @property
    def rule(self) -> str:
        """Decision, actions and addresses, such as `Allow Pub,Sub from 10.0.0.0/8`."""
        sources = f" from {','.join(self.source_ips)}" if self.source_ips else ""
        return f"{self.decision} {','.join(self.actions)}{sources}"

    @property
    def line(self) -> str:
        prefix = "" if self.policy_type == "Custom" else f"{self.policy_type} "
        sources = f" from {','.join(self.source_ips)}" if self.source_ips else ""
        actions = ",".join(self.actions)
        return f"{prefix}{self.decision} {actions} on {self.resource}{sources}"

    def checked(self) -> "Entry":
        """Return the entry in RocketMQ's spelling; raises EntryError."""
        if len(self.source_ips) > SOURCES_MAX:
            raise EntryError(
                format_lazy(
                    _("An entry may have {most} source addresses; use CIDR blocks."),
                    most=SOURCES_MAX,
                )
            )
        if not self.actions:
            raise EntryError(_("An entry needs at least one action."))
        return Entry(
            resource=_resource(self.resource),
            actions=tuple(dict.fromkeys(_word(action, ACTIONS) for action in self.actions)),
            decision=_word(self.decision, DECISIONS),
            source_ips=tuple(dict.fromkeys(map(_source, self.source_ips))),
            policy_type=_word(self.policy_type, POLICY_TYPES),
        )


def read_line(line: str) -> Entry:
    """Return the entry of a line; raises EntryError."""
    found = _LINE.fullmatch(line.strip())
    if found is None:
        raise EntryError(
            format_lazy(
                _("“{text}” is no entry like “Allow Pub,Sub on Topic:orders* from 10.0.0.0/8”."),
                text=line[:QUOTED_CHARS_MAX],
            )
        )
    return Entry(
        resource=found["resource"],
        actions=_split(found["actions"]),
        decision=found["decision"],
        source_ips=_split(found["sources"] or ""),
        policy_type=found["policy"] or "Custom",
    ).checked()


def check_entries(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries of a list in RocketMQ's spelling.

    Raises EntryError for an invalid entry, two entries of one resource, or too many entries.
    """
    if len(entries) > ENTRIES_MAX:
        raise EntryError(
            format_lazy(
                _("A user may have {most} entries; use prefixes such as Topic:orders*."),
                most=ENTRIES_MAX,
            )
        )
    checked: dict[str, Entry] = {}
    for entry in entries:
        right = entry.checked()
        if right.key in checked:
            raise EntryError(
                format_lazy(_("Two entries name the resource {resource}."), resource=right.key)
            )
        checked[right.key] = right
    return tuple(checked.values())


def read_rule(key: str, rule: str) -> Entry:
    """Return the entry of `Entry.key` and `Entry.rule`."""
    policy, blank, resource = key.partition(" ")
    if not blank or policy not in POLICY_TYPES:
        policy, resource = "Custom", key
    decision, _blank, rest = rule.partition(" ")
    actions, _from, sources = rest.partition(" from ")
    return Entry(
        resource=resource,
        actions=_split(actions),
        decision=decision,
        source_ips=_split(sources),
        policy_type=policy,
    )


def entries_of(acl: AclInfo) -> tuple[Entry, ...]:
    """The entries of a list, in the broker's order."""
    return tuple(
        Entry(
            resource=entry.resource or "",
            actions=tuple(entry.actions or ()),
            decision=entry.decision or "",
            source_ips=tuple(entry.source_ips or ()),
            policy_type=policy.policy_type or "Custom",
        )
        for policy in acl.policies or ()
        for entry in policy.entries or ()
    )


def acl_of(subject: str, entries: Iterable[Entry]) -> AclInfo:
    """The list of a subject with these entries."""
    by_type: dict[str, list[PolicyEntryInfo]] = {}
    for entry in entries:
        info = PolicyEntryInfo(
            resource=entry.resource,
            actions=list(entry.actions),
            decision=entry.decision,
            source_ips=list(entry.source_ips) or None,
        )
        by_type.setdefault(entry.policy_type, []).append(info)
    policies = [PolicyInfo(policy_type=kind, entries=infos) for kind, infos in by_type.items()]
    return AclInfo(subject=subject, policies=policies)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def _word(text: str, known: Sequence[str]) -> str:
    """Return the known word in RocketMQ's spelling; letter case does not matter."""
    word = text.capitalize()
    if word not in known:
        raise EntryError(_expected(text, ", ".join(known)))
    return word


def _resource(text: str) -> str:
    """Return `*`, `Topic:name`, `Topic:prefix*` or `Topic:*`."""
    if text == "*":
        return text
    kind, colon, name = text.partition(":")
    if not colon or kind.capitalize() not in RESOURCE_TYPES:
        types = ", ".join(f"{name}:…" for name in RESOURCE_TYPES)
        raise EntryError(_expected(text, f"*, {types}"))
    is_pattern = "*" not in name.removesuffix("*")
    if not name or not name.isprintable() or len(name) > NAME_CHARS_MAX or not is_pattern:
        raise EntryError(
            format_lazy(
                _(
                    "“{text}” is no resource: after the colon comes a name, a prefix with “*” at "
                    "the end, or “*”; at most {most} printable characters."
                ),
                text=text[:QUOTED_CHARS_MAX],
                most=NAME_CHARS_MAX,
            )
        )
    return f"{kind.capitalize()}:{name}"


def _source(text: str) -> str:
    _address, slash, bits = text.partition("/")
    try:
        ip_network(text, strict=False)
        is_valid = "%" not in text and (not slash or (bits.isascii() and bits.isdigit()))
    except ValueError:
        is_valid = False
    if not is_valid:
        raise EntryError(
            format_lazy(
                _("“{text}” is no IP address and no CIDR block."), text=text[:QUOTED_CHARS_MAX]
            )
        )
    return text


def _expected(text: str, known: str) -> Any:
    return format_lazy(
        _("“{text}” is not one of: {known}"), text=text[:QUOTED_CHARS_MAX], known=known
    )
