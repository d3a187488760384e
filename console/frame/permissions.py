"""Permissions: resource x action x names x clusters. Pure; `access.py` applies them to requests.

    topics:read                     the topics of all clusters
    groups:write:payment-*          change groups by name
    messages:read:orders@staging    one topic in one cluster
    *:read                          everything that can be read

A resource is the `resource` of an area (`AreaConfig`), or `*`. Each action includes the actions
before, except `unmasked`, which only `unmasked` and `*` include. Names and clusters are patterns
with `*` for any characters. Whatever no permission allows is denied.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from django.utils.translation import gettext as _

from console.gateway.patterns import ANYTHING, fits

#: Maximum length of a pattern, characters: the length of the longest name in RocketMQ.
PATTERN_CHARS_MAX = 255
#: Maximum number of `*` in a pattern.
STARS_MAX = 8
#: Maximum number of permissions of a role or token.
PERMISSIONS_MAX = 100


class Action(Enum):
    """What a permission allows."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    #: See the values of masked fields.
    UNMASKED = "unmasked"
    ALL = ANYTHING

    def includes(self, other: "Action") -> bool:
        if Action.UNMASKED in (self, other):
            return self in (other, Action.ALL)
        return self is Action.ALL or _RANKS[self] >= _RANKS.get(other, len(_RANKS))


_RANKS = {Action.READ: 0, Action.WRITE: 1, Action.ADMIN: 2}


class Scope(Enum):
    """Quantifier of a target without a single name or cluster."""

    #: Some permitted name is enough: the caller filters by name.
    SOME = "some"
    #: All names: only a permission for `*` is enough.
    EVERY = "every"


@dataclass(frozen=True, slots=True)
class Target:
    """What a request touches. The default is the strictest: every name in every cluster."""

    resource: str
    cluster: str | Scope = Scope.EVERY
    name: str | Scope = Scope.EVERY


class UnusablePermission(ValueError):
    """The text of a permission cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Permission:
    resource: str
    action: Action
    names: str = ANYTHING
    clusters: str = ANYTHING

    def __str__(self) -> str:
        text = f"{self.resource}:{self.action.value}"
        text += "" if self.names == ANYTHING else f":{self.names}"
        return text if self.clusters == ANYTHING else f"{text}@{self.clusters}"

    def allows(self, action: Action, target: Target) -> bool:
        return (
            self.resource in (ANYTHING, target.resource)
            and self.action.includes(action)
            and _reaches(self.clusters, target.cluster)
            and _reaches(self.names, target.name)
        )

    def covers(self, other: "Permission") -> bool:
        """Whether this permission allows every action of `other`; False when in doubt."""
        return (
            self.resource in (ANYTHING, other.resource)
            and self.action.includes(other.action)
            and _covers(self.names, other.names)
            and _covers(self.clusters, other.clusters)
        )


def read_permission(text: str, resources: Iterable[str] = ()) -> Permission:
    """Parse `resource:action[:names][@clusters]`; `resources` are the known ones."""
    rest, _at, clusters = text.strip().partition("@")
    parts = rest.split(":", 2)
    if len(parts) < 2:
        said = _("“%(text)s”: expected resource:action[:names][@cluster]")
        raise UnusablePermission(said % {"text": shown(text)})
    resource, action, names = (*parts, ANYTHING)[:3]
    known = sorted(resources)
    if resource != ANYTHING and known and resource not in known:
        said = _("“%(text)s”: unknown resource. Known: %(known)s")
        names_known = ", ".join([ANYTHING, *known])
        raise UnusablePermission(said % {"text": shown(resource), "known": names_known})
    if action not in {each.value for each in Action}:
        said = _("“%(text)s”: unknown action. Known: %(known)s")
        actions = ", ".join(each.value for each in Action)
        raise UnusablePermission(said % {"text": shown(action), "known": actions})
    for pattern in (names, clusters if _at else ANYTHING):
        _check_pattern(pattern)
    return Permission(resource, Action(action), names, clusters if _at else ANYTHING)


def read_permissions(lines: Iterable[str], resources: Iterable[str] = ()) -> tuple[Permission, ...]:
    """Parse one permission per line, without empty lines and repetitions."""
    known = tuple(resources)
    texts = dict.fromkeys(line.strip() for line in lines if line.strip())
    if len(texts) > PERMISSIONS_MAX:
        said = _("%(count)d permissions; the maximum is %(most)d.")
        raise UnusablePermission(said % {"count": len(texts), "most": PERMISSIONS_MAX})
    return tuple(dict.fromkeys(read_permission(text, known) for text in texts))


def first_allowing(
    permissions: Sequence[Permission], action: Action, target: Target
) -> Permission | None:
    """Return the permission that allows the action: the reason of the decision."""
    return next((each for each in permissions if each.allows(action, target)), None)


def not_covered(wanted: Iterable[Permission], held: Sequence[Permission]) -> tuple[Permission, ...]:
    """Return the wanted permissions that no single held permission covers."""
    return tuple(each for each in wanted if not any(own.covers(each) for own in held))


def shown(text: str) -> str:
    """Return the text for a message: short, without control characters."""
    plain = "".join(char if char.isprintable() else "�" for char in text)
    return plain if len(plain) <= 40 else f"{plain[:40]}…"


def _check_pattern(pattern: str) -> None:
    if not 0 < len(pattern) <= PATTERN_CHARS_MAX:
        said = _("“%(text)s”: a pattern has 1 to %(most)d characters.")
        raise UnusablePermission(said % {"text": shown(pattern), "most": PATTERN_CHARS_MAX})
    if pattern.count(ANYTHING) > STARS_MAX:
        said = _("“%(text)s”: a pattern has at most %(most)d “*”.")
        raise UnusablePermission(said % {"text": shown(pattern), "most": STARS_MAX})
    if not pattern.isprintable() or " " in pattern:
        said = _("“%(text)s”: a pattern has no blanks and no control characters.")
        raise UnusablePermission(said % {"text": shown(pattern)})


def _reaches(pattern: str, wanted: str | Scope) -> bool:
    if isinstance(wanted, Scope):
        return wanted is Scope.SOME or not pattern.strip(ANYTHING)
    return fits(pattern, wanted)


def _covers(pattern: str, other: str) -> bool:
    if not pattern.strip(ANYTHING) or pattern == other:
        return True
    if ANYTHING not in other:
        return fits(pattern, other)
    prefix = pattern.removesuffix(ANYTHING)
    return ANYTHING not in prefix and pattern != prefix and other.startswith(prefix)
