"""Headers of users and access control lists (ACL 2.0): codes 3001 to 3010.

Compatible with RocketMQ 5.3's CreateUserRequestHeader to ListAclsRequestHeader. Java declares
every field as optional.
"""

from core_broker.remoting.ext_fields import Header


class CreateUserRequestHeader(Header):
    """Request of AUTH_CREATE_USER (3001)."""

    username: str = ""


class UpdateUserRequestHeader(CreateUserRequestHeader):
    """Request of AUTH_UPDATE_USER (3002)."""


class DeleteUserRequestHeader(CreateUserRequestHeader):
    """Request of AUTH_DELETE_USER (3003)."""


class GetUserRequestHeader(CreateUserRequestHeader):
    """Request of AUTH_GET_USER (3004)."""


class ListUsersRequestHeader(Header):
    """Request of AUTH_LIST_USER (3005): a part of the name."""

    filter: str = ""


class CreateAclRequestHeader(Header):
    """Request of AUTH_CREATE_ACL (3006); the body's subject takes precedence."""

    subject: str = ""


class UpdateAclRequestHeader(CreateAclRequestHeader):
    """Request of AUTH_UPDATE_ACL (3007)."""


class DeleteAclRequestHeader(CreateAclRequestHeader):
    """Request of AUTH_DELETE_ACL (3008)."""

    policy_type: str = ""
    resource: str = ""


class GetAclRequestHeader(CreateAclRequestHeader):
    """Request of AUTH_GET_ACL (3009)."""


class ListAclsRequestHeader(Header):
    """Request of AUTH_LIST_ACL (3010): parts of subject and resource."""

    subject_filter: str = ""
    resource_filter: str = ""
