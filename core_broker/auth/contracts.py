"""Interfaces of access control: requests, identities, refusals and rules.

Rules are one immutable generation of accounts and permissions. A reload makes new rules, and the
gate replaces the old ones by one assignment: every decision uses rules of one generation.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from core_broker.auth.signature import SigningKey
from core_broker.errors import RequestRefused
from core_broker.remoting.codes import LanguageCode, RequestCode
from core_broker.remoting.command import RemotingCommand


class Request(NamedTuple):
    """The part of a request that decides about access."""

    code: int
    version: int
    language: LanguageCode
    #: All ext fields, also AccessKey and Signature, as decoded text.
    ext_fields: Mapping[str, str]
    body: bytes | memoryview

    @classmethod
    def of(cls, command: RemotingCommand) -> "Request":
        """Return the deciding part of a received command."""
        return cls(
            command.code, command.version, command.language, command.ext_fields, command.body
        )


class Established(StrEnum):
    """How an identity was established."""

    SIGNATURE = "signature"
    #: The global white list: every request from the address is admitted.
    WHITE_LIST = "white list"
    ACCOUNT_WHITE_LIST = "account white list"
    #: The request code needs no identity: authenticationWhitelist, or authentication is off.
    NOT_CHECKED = "not checked"


class Identity(NamedTuple):
    """The sender of a request."""

    #: Access key or user name; "" when the request names no account.
    account: str
    is_admin: bool
    how: Established
    #: The key that verified the signature, for the fast path; None keeps requests on the slow path.
    signing_key: SigningKey | None = None


class ResourceKind(StrEnum):
    """Kind of a resource, with the names of ACL 2.0. ACL 1.0 has topics and groups only."""

    TOPIC = "Topic"
    GROUP = "Group"
    CLUSTER = "Cluster"


class Action(StrEnum):
    """What a request does with a resource, with the names of ACL 2.0. ACL 1.0 has Pub and Sub."""

    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


#: What a request about one stored message does with the topic of the message, by request code; one
#: of the actions must be allowed. Requests 33, 36 and 37 of RocketMQ 4 do not name the topic.
STORED_ACTIONS: Final[Mapping[int, tuple[Action, ...]]] = {
    RequestCode.VIEW_MESSAGE_BY_ID: (Action.SUB, Action.GET),
    RequestCode.CONSUMER_SEND_MSG_BACK: (Action.SUB,),
    RequestCode.END_TRANSACTION: (Action.PUB,),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: (Action.UPDATE,),
}


class Decision(NamedTuple):
    """The answer to "may the identity do the action", with the deciding rule as text."""

    is_allowed: bool
    #: The rule as the operator wrote it, for example `topicPerms: TopicA=PUB`.
    rule: str
    #: RocketMQ's remark of the refusal; "" when allowed.
    remark: str = ""


class Ruling(NamedTuple):
    """The decision about one resource of a request, for explanations."""

    #: `Topic:name`, `Group:name`, `Cluster:name`; "" if the request names no resource.
    resource: str
    decision: Decision
    #: All rules that match the resource, at most MATCHING_MAX, in order of priority.
    matching: tuple[str, ...] = ()


#: Maximum number of matching rules in a `Ruling`.
MATCHING_MAX: Final = 20


class Check(StrEnum):
    """A check of a request; each generation of access control has an order of checks."""

    #: ACL 1.0: globalWhiteRemoteAddresses.
    WHITE_LIST = "white-list"
    ACCOUNT = "account"
    #: ACL 1.0: whiteRemoteAddress of the account.
    ACCOUNT_WHITE_LIST = "account-white-list"
    SIGNATURE = "signature"
    #: `admin: true` of ACL 1.0, or a super user of ACL 2.0.
    ADMINISTRATOR = "administrator"
    #: topicPerms, groupPerms and their defaults of ACL 1.0, or the entries of ACL 2.0.
    PERMISSIONS = "permissions"


class Refusal(RequestRefused):
    """A request that the rules refuse; becomes the answer with RocketMQ's code and remark.

    `reason` is one of a few fixed words and labels metrics: "no-account", "unknown-account",
    "disabled-account", "bad-signature", "no-permission", "admin-only", "unreadable", "replayed",
    "backing-off" or "no-rules". `account` is the name as the request claims.
    """

    def __init__(
        self,
        code: int,
        remark: str,
        reason: str,
        *,
        account: str = "",
        resource: str = "",
        rule: str = "",
    ) -> None:
        super().__init__(code, remark)
        self.reason = reason
        self.account = account
        #: `Topic:name`, `Group:name`, `Cluster:name`, or "".
        self.resource = resource
        self.rule = rule


#: Reasons of refusals that a guess of names and keys causes.
GUESSES = frozenset({"unknown-account", "bad-signature"})


class Rules(Protocol):
    """One immutable generation of the rules of ACL 1.0 or ACL 2.0.

    `address` is the peer's IP address without port, as the socket reports the address. All methods
    compute only: no I/O, no clock, no state that a later call could see.
    """

    @property
    def generation(self) -> int:
        """Increases with every reload; shown in logs and /varz."""

    def admit(self, address: str, request: Request) -> Identity:
        """Authenticate a request and check everything that its code needs; raises Refusal."""

    def identify(self, address: str, request: Request) -> Identity:
        """Authenticate alone: white lists, account, signature; raises Refusal."""

    def check_stored(self, address: str, request: Request, topic: str) -> None:
        """Check an admitted request with a code of STORED_ACTIONS, about a message of the topic.

        Raises Refusal.
        """

    def may(
        self, identity: Identity, address: str, kind: ResourceKind, name: str, action: Action
    ) -> Decision:
        """Decide about one resource. An identity of a white list may do everything in ACL 1.0."""
