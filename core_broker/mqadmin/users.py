"""Users of access control in RocketMQ 5.3 (ACL 2.0): codes 3001 to 3005.

Compatible with CreateUserSubCommand to CopyUsersSubCommand of RocketMQ 5.3.3. Passwords are
printed on request only.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click

from core_broker.errors import ClientError
from core_broker.mqadmin.command import command, split_list, switch, text
from core_broker.mqadmin.lookup import masters, masters_and_slaves
from core_broker.mqadmin.output import Column, Record, Table
from core_broker.mqadmin.session import NotFound, Session
from core_broker.mqadmin.targets import broker_or_cluster
from core_broker.remoting.bodies import UserInfo

#: Bytes read of a password file; the password is the first line.
PASSWORD_FILE_BYTES_MAX: Final = 4096
HIDDEN: Final = "***"

_USERS = Table(
    "%-16s  %-22s  %-22s  %-22s",
    [
        Column("userName", "#UserName"),
        Column("password", "#Password"),
        Column("userType", "#UserType"),
        Column("userStatus", "#UserStatus"),
    ],
)


@command("createUser")
@broker_or_cluster("create user to which broker", "create user to which cluster")
@text("-u", "--username", required=True, help="the username of user to create.")
@text("-p", "--password", help="the password of user to create | default: a prompt")
@text("--passwordFile", help="file with the password in its first line")
@text("-t", "--userType", help="the userType of user to create: Super or Normal")
async def create_user(
    session: Session,
    *,
    broker_addr: str | None,
    cluster_name: str | None,
    username: str,
    password: str | None,
    password_file: str | None,
    user_type: str | None,
) -> None:
    """Works on one broker, or on all masters and slaves of a cluster.

    Other users of the machine can read the arguments of programs: prefer the prompt or
    --passwordFile to -p.
    """
    secret = _password(password, password_file)
    if secret is None:
        secret = click.prompt("password", hide_input=True, confirmation_prompt=True, err=True)
    user = UserInfo(username=username, password=secret, user_type=user_type)
    addrs = await masters_and_slaves(session.admin, broker_addr, cluster_name)
    for addr in addrs:
        await session.admin.create_user(addr, user)
        session.out.show_text(f"create user to {addr} success.")
    session.out.show_json({"userName": username, "created": addrs})


@command("updateUser")
@broker_or_cluster("update user to which broker", "update user to which cluster")
@text("-u", "--username", required=True, help="the username of user to update.")
@text("-p", "--password", help="the password of user to update")
@text("--passwordFile", help="file with the password in its first line")
@text("-t", "--userType", help="the userType of user to update: Super or Normal")
@text("-s", "--userStatus", help="the userStatus of user to update: enable or disable")
async def update_user(
    session: Session,
    *,
    broker_addr: str | None,
    cluster_name: str | None,
    username: str,
    password: str | None,
    password_file: str | None,
    user_type: str | None,
    user_status: str | None,
) -> None:
    """Changes password, type or status, exactly one of the three."""
    secret = _password(password, password_file)
    if [secret, user_type, user_status].count(None) != 2:
        raise click.UsageError(
            "Give exactly one of -p/--password (or --passwordFile), -t/--userType and "
            "-s/--userStatus.",
            click.get_current_context(silent=True),
        )
    user = UserInfo(
        username=username, password=secret, user_type=user_type, user_status=user_status
    )
    addrs = await masters_and_slaves(session.admin, broker_addr, cluster_name)
    for addr in addrs:
        await session.admin.update_user(addr, user)
        session.out.show_text(f"update user to {addr} success.")
    session.out.show_json({"userName": username, "updated": addrs})


@command("deleteUser", destructive=True)
@broker_or_cluster("delete user from which broker", "delete user from which cluster")
@text("-u", "--username", required=True, help="the username of user to delete.")
async def delete_user(
    session: Session, broker_addr: str | None, cluster_name: str | None, username: str
) -> None:
    """Deletes the user and the user's access control list."""
    addrs = await masters_and_slaves(session.admin, broker_addr, cluster_name)
    for addr in addrs:

        async def delete(addr: str = addr) -> None:
            await session.admin.delete_user(addr, username)

        await session.change(f"delete user to {addr} success.", delete)
    session.out.show_json({"userName": username, "deleted": addrs, "dryRun": session.dry_run})


@command("getUser")
@broker_or_cluster("get user for which broker", "get user for specified cluster")
@text("-u", "--username", required=True, help="the username of user to get")
@switch("--showPassword", help="print the password, if the broker returns it")
async def get_user(
    session: Session,
    broker_addr: str | None,
    cluster_name: str | None,
    username: str,
    show_password: bool,
) -> None:
    """Asks one broker, or the first master of a cluster that has the user."""
    for addr in await masters(session.admin, broker_addr, cluster_name):
        user = await session.admin.user(addr, username)
        if user is not None:
            _show(session, addr, [user], show_password=show_password)
            return
    _show(session, None, [], show_password=show_password)


@command("listUser")
@broker_or_cluster("list user for which broker", "list user for specified cluster")
@text("-f", "--filter", help="the filter to list users: a part of the name")
@switch("--showPassword", help="print the passwords, if the broker returns them")
async def list_user(
    session: Session,
    broker_addr: str | None,
    cluster_name: str | None,
    filter: str | None,  # noqa: A002 - RocketMQ's option
    show_password: bool,
) -> None:
    """Asks one broker, or the first master of a cluster that has matching users."""
    for addr in await masters(session.admin, broker_addr, cluster_name):
        users = await session.admin.users(addr, filter or "")
        if users:
            _show(session, addr, users, show_password=show_password)
            if cluster_name:
                session.out.show_text(f"get user from {addr} success.")
            return
    _show(session, None, [], show_password=show_password)


@command("copyUser")
@text("-f", "--fromBroker", required=True, help="the source broker that the users copy from")
@text("-t", "--toBroker", required=True, help="the target broker that the users copy to")
@text("-u", "--usernames", help="the username list of user to copy.")
async def copy_user(
    session: Session, from_broker: str, to_broker: str, usernames: str | None
) -> None:
    """Copies the named users, or all users; a user of the target is changed.

    The source must return passwords: Java brokers do, a Gantry broker only with
    userPasswordReadable=true.
    """
    admin = session.admin
    if usernames:
        named = [await admin.user(from_broker, name) for name in split_list(usernames)]
        users = [user for user in named if user is not None]
    else:
        users = await admin.users(from_broker)
    copied = []
    for user in users:
        if not user.password:
            raise NotFound(
                f"The broker at {from_broker} returns no password of {user.username}; "
                "create the user with createUser, or set userPasswordReadable=true at the source."
            )
        known = await admin.user(to_broker, user.username or "")
        await (admin.create_user if known is None else admin.update_user)(to_broker, user)
        copied.append(user.username)
        session.out.show_text(
            f"copy user of {user.username} from {from_broker} to {to_broker} success."
        )
    session.out.show_json({"from": from_broker, "to": to_broker, "copied": copied})


def _password(password: str | None, file: str | None) -> str | None:
    if password is not None and file is not None:
        raise click.UsageError("Give one of -p/--password and --passwordFile, not both.")
    if file is None:
        return password
    try:
        with Path(file).open(encoding="utf-8") as stream:
            line = stream.read(PASSWORD_FILE_BYTES_MAX).partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{file} cannot be read: {error}.") from None
    if not line:
        raise ClientError(f"{file} has no password in its first line.")
    return line


def _show(
    session: Session, addr: str | None, users: Iterable[UserInfo], *, show_password: bool
) -> None:
    records: list[dict[str, Any]] = [
        {
            "userName": user.username,
            "password": user.password if show_password else HIDDEN,
            "userType": user.user_type,
            "userStatus": user.user_status,
        }
        for user in users
    ]
    rows: list[Record] = [
        {key: "-" if value is None else value for key, value in record.items()}
        for record in records
    ]
    # Java prints no header without users.
    session.out.show({"brokerAddr": addr, "users": records}, _USERS.lines(rows) if rows else [])
