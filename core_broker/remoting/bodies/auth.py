"""Users and access control lists (ACL 2.0), in requests and answers of the codes 3001 to 3010.

Compatible with RocketMQ 5.3's UserInfo and AclInfo. None is an absent member: an update keeps the
present value.
"""

from msgspec import Struct


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


class AclInfo(Struct, rename="camel", kw_only=True):
    """The access control list of a subject, for example `User:alice`."""

    policies: list[PolicyInfo] | None = None
    subject: str | None = None
