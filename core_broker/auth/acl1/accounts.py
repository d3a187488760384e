"""Accounts of ACL 1.0 and the content of one access control file, as read.

Compatible with RocketMQ's PlainAccessConfig and PlainAccessResource. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core_broker.auth.acl1.addresses import AddressPattern
from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.permissions import Perm, parse_permission, permission_text
from core_broker.auth.signature import SigningKey
from core_broker.remoting.bodies import DataVersion

#: Minimum length of access keys and secret keys, characters.
KEY_LENGTH_MIN: Final = 7
#: Secrets shorter than this length are reported at each load, characters.
SECRET_LENGTH_SAFE: Final = 16
#: The secret keys of the plain_acl.yml in RocketMQ's distribution, known to everybody.
EXAMPLE_SECRETS: Final = frozenset({"12345678"})
#: Group permissions are kept under the name of the group's retry topic.
RETRY_PREFIX: Final = "%RETRY%"


@dataclass(frozen=True, slots=True)
class Account:
    """One account. The secret key itself is not kept, only the key that checks signatures."""

    access_key: str
    signing_key: SigningKey
    white_address: AddressPattern
    is_admin: bool
    default_topic_perm: Perm
    default_group_perm: Perm
    #: Permissions by topic name, and by %RETRY%group.
    perms: Mapping[str, Perm]
    #: Path of the account's file.
    file: str

    @property
    def topic_perms(self) -> list[str]:
        """The listed permissions of topics, written name=permission."""
        return [
            f"{name}={permission_text(perm)}"
            for name, perm in self.perms.items()
            if not name.startswith(RETRY_PREFIX)
        ]

    @property
    def group_perms(self) -> list[str]:
        """The listed permissions of groups, written name=permission."""
        return [
            f"{name.removeprefix(RETRY_PREFIX)}={permission_text(perm)}"
            for name, perm in self.perms.items()
            if name.startswith(RETRY_PREFIX)
        ]


@dataclass(frozen=True, slots=True)
class AclFile:
    """The content of one file."""

    path: str
    accounts: tuple[Account, ...] = ()
    white_list: tuple[AddressPattern, ...] = ()
    #: None for a file without content, which has no version in the answer to code 52.
    version: DataVersion | None = None
    #: Advice for the operator, one sentence each, without secrets.
    warnings: tuple[str, ...] = ()


def check_key(name: str, value: str | None) -> str:
    """An access key or secret key; raises RulesError for a short key, without quoting the key."""
    if value is None or len(value) < KEY_LENGTH_MIN:
        raise RulesError(
            f"{name} needs at least {KEY_LENGTH_MIN} characters; quote digits in YAML."
        )
    return value


def split_permission(item: str) -> tuple[str, str]:
    """Name and permission word of `name=permission`. Raises RulesError."""
    name, sign, word = (part.strip() for part in item.partition("="))
    if not (name and sign and word) or "=" in word:
        raise RulesError(f"Permission {item!r} is not written name=permission, as in TopicA=SUB.")
    return name, word


def parse_permissions(topic_perms: list[str], group_perms: list[str]) -> dict[str, Perm]:
    """The permissions by topic and by %RETRY%group; of equal names the last counts."""
    perms: dict[str, Perm] = {}
    for prefix, items in (("", topic_perms), (RETRY_PREFIX, group_perms)):
        for name, word in map(split_permission, items):
            perms[prefix + name] = parse_permission(word)
    return perms
