"""Users, resources, actions and access control lists of ACL 2.0.

    subject    User:alice
    resource   *, Topic:name (one topic), Topic:pre* (a prefix), Topic:* (all topics)
    action     All, Pub, Sub, Create, Update, Delete, Get, List

Names of types and actions ignore case, names of resources do not. The numbers of the enumerations
are those of RocketMQ's store. Compatible with User, Subject, Resource, Action, PolicyEntry, Policy
and Acl of RocketMQ 5.3. Values are immutable.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from core_broker.auth.acl2.source_addresses import SourceAddresses
from core_broker.auth.contracts import Action, ResourceKind
from core_broker.auth.signature import SigningKey

SUBJECT_PREFIX: Final = "User:"
_ANY_RESOURCE = "*"


class UserType(IntEnum):
    """A super user may do everything; a normal user what the user's list allows."""

    SUPER = 1
    NORMAL = 2


class UserStatus(IntEnum):
    """Requests of a disabled user are refused."""

    ENABLE = 1
    DISABLE = 2


class ResourceType(IntEnum):
    """Type of a resource. No request needs a namespace."""

    ANY = 1
    CLUSTER = 2
    NAMESPACE = 3
    TOPIC = 4
    GROUP = 5


class ResourcePattern(IntEnum):
    """How the name of a resource matches."""

    ANY = 1
    LITERAL = 2
    PREFIXED = 3


class RuleAction(IntEnum):
    """An action of an entry; ALL stands for every action."""

    ALL = 1
    PUB = 3
    SUB = 4
    CREATE = 5
    UPDATE = 6
    DELETE = 7
    GET = 8
    LIST = 9


class RuleDecision(IntEnum):
    """The decision of an entry."""

    ALLOW = 1
    DENY = 2


class PolicyType(IntEnum):
    """Entries of the Default policy decide only if no Custom entry matches."""

    CUSTOM = 1
    DEFAULT = 2


E = TypeVar("E", bound=IntEnum)


def title(member: IntEnum) -> str:
    """Return the name on the wire: Super, Topic, Allow; a status is written in lower case."""
    name = member.name
    return name.lower() if isinstance(member, UserStatus) else name.capitalize()


def named(kind: type[E], text: str | None) -> E | None:
    """Return the member of a name in any case, or None."""
    return kind.__members__.get((text or "").upper())


class Resource(NamedTuple):
    """A pattern of resources; `name` is the prefix of a PREFIXED resource, "" for ANY."""

    type: ResourceType
    pattern: ResourcePattern
    name: str

    @classmethod
    def parse(cls, text: str) -> "Resource | None":
        """Return the resource of `Topic:name`; None if nothing could ever match the text.

        RocketMQ also accepts `Topic:` and `Topic:a*b`, which match nothing, and `Any:name`, which
        matches everything.
        """
        if text == _ANY_RESOURCE:
            return cls(ResourceType.ANY, ResourcePattern.ANY, "")
        type_name, _, name = text.partition(":")
        kind = named(ResourceType, type_name)
        if kind is None or kind is ResourceType.ANY or not name or not name.isprintable():
            return None
        if name == "*":
            return cls(kind, ResourcePattern.ANY, "")
        prefix = name.removesuffix("*")
        if "*" in prefix:
            return None
        pattern = ResourcePattern.LITERAL if prefix == name else ResourcePattern.PREFIXED
        return cls(kind, pattern, prefix)

    def matches(self, kind: ResourceType, name: str) -> bool:
        """Whether the pattern has the resource."""
        if self.type is ResourceType.ANY:
            return True
        if self.type is not kind:
            return False
        if self.pattern is ResourcePattern.LITERAL:
            return self.name == name
        return self.pattern is ResourcePattern.ANY or name.startswith(self.name)

    def __str__(self) -> str:
        if self.type is ResourceType.ANY:
            return _ANY_RESOURCE
        star = "" if self.pattern is ResourcePattern.LITERAL else "*"
        return f"{title(self.type)}:{self.name}{star}"


#: The resource types of the resources that requests need.
TYPES_OF_KINDS: Final = {
    ResourceKind.TOPIC: ResourceType.TOPIC,
    ResourceKind.GROUP: ResourceType.GROUP,
    ResourceKind.CLUSTER: ResourceType.CLUSTER,
}
_RULE_ACTIONS: Final = {action: RuleAction[action.name] for action in Action}


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A rule: actions on a resource, from source addresses, allowed or denied."""

    resource: Resource
    actions: tuple[RuleAction, ...]
    sources: SourceAddresses
    decision: RuleDecision
    _actions: frozenset[RuleAction] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_actions", frozenset(self.actions))

    def has_action(self, action: Action) -> bool:
        """Whether the entry is about the action."""
        return _RULE_ACTIONS[action] in self._actions or RuleAction.ALL in self._actions

    def __str__(self) -> str:
        actions = ",".join(map(title, self.actions))
        sources = f" from {','.join(self.sources.texts)}" if self.sources.texts else ""
        return f"{title(self.decision)} {actions} on {self.resource}{sources}"


class Policy(NamedTuple):
    """The entries of one policy type, in the order of their creation."""

    type: PolicyType
    entries: tuple[PolicyEntry, ...]


class Acl(NamedTuple):
    """The access control list of a user: at most one policy per type."""

    policies: tuple[Policy, ...]

    def entries(self, kind: PolicyType) -> tuple[PolicyEntry, ...]:
        """The entries of a policy type."""
        return next((policy.entries for policy in self.policies if policy.type is kind), ())


@dataclass(frozen=True, slots=True)
class User:
    """A user. The password is the HMAC key of the user's signatures."""

    username: str
    password: str = field(repr=False)
    type: UserType = UserType.NORMAL
    status: UserStatus = UserStatus.ENABLE
    key: SigningKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", SigningKey(self.password))

    @property
    def is_super(self) -> bool:
        """Whether the user may do everything."""
        return self.type is UserType.SUPER


def username_of(subject: str) -> str | None:
    """Return the name in `User:name`; None for another type of subject."""
    kind, colon, name = subject.partition(":")
    return name if colon and kind.lower() == "user" else None
