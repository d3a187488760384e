"""Users and access control lists (ACL 2.0), in requests and answers of the codes 3001 to 3010;
accounts (ACL 1.0) in the answer of code 54, and in Gantry's private codes 60004 and 60005.

Compatible with RocketMQ 5.3's UserInfo and AclInfo. None is an absent member: an update keeps the
present value.
"""

from msgspec import Struct

from core_broker.remoting.bodies.tables import DataVersion


class UserInfo(Struct, rename="camel", kw_only=True):
    """A user. `user_type` is Super or Normal, `user_status` enable or disable."""

    password: str | None = None
    user_status: str | None = None
    user_type: str | None = None
    username: str | None = None

    def __repr__(self) -> str:
        return f"UserInfo(username={self.username!r}, password=***)"


class PolicyEntryInfo(Struct, rename="camel", kw_only=True):
    """A rule of a policy: actions on a resource from source addresses, allowed or denied."""

    actions: list[str] | None = None
    decision: str | None = None
    resource: str | None = None
    source_ips: list[str] | None = None


class PolicyInfo(Struct, rename="camel", kw_only=True):
    """A policy; `policy_type` is Custom or Default."""

    entries: list[PolicyEntryInfo] | None = None
    policy_type: str | None = None


class PlainAccessConfig(Struct, rename="camel", kw_only=True):
    """An account of ACL 1.0, with the keys of plain_acl.yml."""

    access_key: str | None = None
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: list[str] | None = None
    group_perms: list[str] | None = None

    def __repr__(self) -> str:
        return f"PlainAccessConfig(access_key={self.access_key!r}, secret_key=***)"


class ClusterAclConfig(Struct, rename="camel", kw_only=True):
    """All accounts and the global white list of a broker before 4.9.8 and 5.2 (code 54)."""

    global_white_addrs: list[str] | None = None
    plain_access_configs: list[PlainAccessConfig] | None = None


class AccessFile(Struct, rename="camel", kw_only=True):
    """An access control file of ACL 1.0: its version and its part of the global white list."""

    path: str
    version: DataVersion
    global_white_remote_addresses: list[str] = []


class AccessEntry(Struct, rename="camel", kw_only=True):
    """An account of ACL 1.0 in force, without the secret key. `file` is the path of its file."""

    access_key: str
    file: str
    white_remote_address: str
    admin: bool
    default_topic_perm: str
    default_group_perm: str
    topic_perms: list[str]
    group_perms: list[str]


class AccessInventoryBody(Struct, rename="camel", kw_only=True):
    """Answer to GET_ACCESS_INVENTORY (60004): accounts and white lists in force, without secrets.

    `problem` is the reason why changed files are not in force.
    """

    default_file: str
    files: list[AccessFile]
    accounts: list[AccessEntry]
    problem: str | None = None


class AclInfo(Struct, rename="camel", kw_only=True):
    """The access control list of a subject, for example `User:alice`."""

    policies: list[PolicyInfo] | None = None
    subject: str | None = None
