"""Users and access control lists of RocketMQ 5.3 (ACL 2.0): codes 3001 to 3010."""

from core_broker.client.admin.base import AdminBase
from core_broker.remoting.bodies import AclInfo, UserInfo, decode_body, encode_body
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import (
    CreateAclRequestHeader,
    CreateUserRequestHeader,
    DeleteAclRequestHeader,
    DeleteUserRequestHeader,
    GetAclRequestHeader,
    GetUserRequestHeader,
    ListAclsRequestHeader,
    ListUsersRequestHeader,
    UpdateAclRequestHeader,
    UpdateUserRequestHeader,
)


class UserAdmin(AdminBase):
    """Each method asks one broker: brokers do not replicate users and lists."""

    async def create_user(self, addr: str, user: UserInfo) -> None:
        header = CreateUserRequestHeader(username=user.username or "")
        await self._ask(addr, RequestCode.AUTH_CREATE_USER, header, encode_body(user))

    async def update_user(self, addr: str, user: UserInfo) -> None:
        """Replace the members of the user that are not None."""
        header = UpdateUserRequestHeader(username=user.username or "")
        await self._ask(addr, RequestCode.AUTH_UPDATE_USER, header, encode_body(user))

    async def delete_user(self, addr: str, username: str) -> None:
        """Delete a user with its access control list; an unknown user is no error."""
        header = DeleteUserRequestHeader(username=username)
        await self._ask(addr, RequestCode.AUTH_DELETE_USER, header)

    async def user(self, addr: str, username: str) -> UserInfo | None:
        """Return a user, None for an unknown name. Gantry returns no password, Java does."""
        header = GetUserRequestHeader(username=username)
        answer = await self._ask(addr, RequestCode.AUTH_GET_USER, header)
        return decode_body(UserInfo, answer.body) if answer.body else None

    async def users(self, addr: str, name_part: str = "") -> list[UserInfo]:
        """Return the users whose name contains a text."""
        header = ListUsersRequestHeader(filter=name_part)
        answer = await self._ask(addr, RequestCode.AUTH_LIST_USER, header)
        return decode_body(list[UserInfo], answer.body) if answer.body else []

    async def create_acl(self, addr: str, acl: AclInfo) -> None:
        """Add entries to the subject's list; an entry with the same resource is replaced."""
        header = CreateAclRequestHeader(subject=acl.subject or "")
        await self._ask(addr, RequestCode.AUTH_CREATE_ACL, header, encode_body(acl))

    async def update_acl(self, addr: str, acl: AclInfo) -> None:
        """Do the same as `create_acl`; tools send this code for a changed list."""
        header = UpdateAclRequestHeader(subject=acl.subject or "")
        await self._ask(addr, RequestCode.AUTH_UPDATE_ACL, header, encode_body(acl))

    async def delete_acl(
        self, addr: str, subject: str, resource: str = "", policy_type: str = ""
    ) -> None:
        """Delete the entry of a resource in one policy (Custom without a type), or the list."""
        header = DeleteAclRequestHeader(subject=subject, resource=resource, policy_type=policy_type)
        await self._ask(addr, RequestCode.AUTH_DELETE_ACL, header)

    async def acl(self, addr: str, subject: str) -> AclInfo | None:
        """Return the subject's list, None without entries."""
        header = GetAclRequestHeader(subject=subject)
        answer = await self._ask(addr, RequestCode.AUTH_GET_ACL, header)
        return decode_body(AclInfo, answer.body) if answer.body else None

    async def acls(
        self, addr: str, subject_part: str = "", resource_part: str = ""
    ) -> list[AclInfo]:
        """Return the lists whose subject and resources contain the texts."""
        header = ListAclsRequestHeader(subject_filter=subject_part, resource_filter=resource_part)
        answer = await self._ask(addr, RequestCode.AUTH_LIST_ACL, header)
        if not answer.body:
            return []
        if subject_part or resource_part:
            return decode_body(list[AclInfo], answer.body)
        return self._table(list[AclInfo], addr, RequestCode.AUTH_LIST_ACL, answer.body)
