"""Lists of topics and groups from a file: updateTopicList (code 18), updateSubGroupList (225).

Compatible with UpdateTopicListSubCommand and UpdateSubGroupListSubCommand of RocketMQ 5.3.3. A
broker takes a whole list, or refuses the whole list.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from core_broker.errors import ClientError, GantryError, ProtocolError
from core_broker.message.topics import validate_group, validate_topic
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.lookup import masters
from core_broker.mqadmin.session import NotFound, Session
from core_broker.mqadmin.targets import broker_or_cluster
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig, decode_body

T = TypeVar("T")

#: Maximum size of a list file, bytes: a broker's default limit of a request body.
FILE_BYTES_MAX: Final = 4 * 1024 * 1024
_FILE_HELP: Final = "Path to a file with a list of {} in json format"


@command("updateTopicList")
@broker_or_cluster("create topic to which broker", "create topic to which cluster")
@text("-f", "--filename", required=True, help=_FILE_HELP.format("TopicConfig"))
async def update_topic_list(
    session: Session, broker_addr: str | None, cluster_name: str | None, filename: str
) -> None:
    """Creates or updates all topics of the file, on one broker or on all masters of a cluster.

    After a broker refuses the list, the command goes on with the next broker.
    """
    topics = await _read_list(
        Path(filename), list[TopicConfig], lambda topic: validate_topic(topic.topic_name)
    )
    addrs = await masters(session.admin, broker_addr, cluster_name)
    created = await _submit(session, addrs, topics, session.admin.create_topics)
    what = "submit batch of topic config to {} success, please check the result later."
    document = {"created": created, "topicConfigList": topics}
    session.out.show(document, [what.format(addr) for addr in created])


@command("updateSubGroupList")
@broker_or_cluster("create groups to which broker", "create groups to which cluster")
@text("-f", "--filename", required=True, help=_FILE_HELP.format("SubscriptionGroupConfig"))
async def update_sub_group_list(
    session: Session, broker_addr: str | None, cluster_name: str | None, filename: str
) -> None:
    """Creates or updates all groups of the file, on one broker or on all masters of a cluster.

    After a broker refuses the list, the command goes on with the next broker.
    """
    groups = await _read_list(
        Path(filename),
        list[SubscriptionGroupConfig],
        lambda group: validate_group(group.group_name),
    )
    addrs = await masters(session.admin, broker_addr, cluster_name)
    created = await _submit(session, addrs, groups, session.admin.create_groups)
    kind = "group" if broker_addr else "subscription group"
    what = f"submit batch of {kind} config to {{}} success, please check the result later."
    document = {"created": created, "groupConfigList": groups}
    session.out.show(document, [what.format(addr) for addr in created])


async def _submit(
    session: Session,
    addrs: Sequence[str],
    items: list[T],
    create: Callable[[str, list[T]], Awaitable[None]],
) -> list[str]:
    """Send the list to each broker; returns the brokers that took the list."""
    created = []
    for addr in addrs:
        try:
            await create(addr, items)
        except GantryError as error:
            session.failed(error)
        else:
            created.append(addr)
    return created


async def _read_list(path: Path, kind: type[list[T]], check: Callable[[T], None]) -> list[T]:
    """Read a JSON file with a list; raises NotFound, or ClientError, also for a failed check."""
    try:
        content = await asyncio.to_thread(_read, path)
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror or error}.") from None
    if len(content) > FILE_BYTES_MAX:
        raise ClientError(f"{path} is longer than {FILE_BYTES_MAX} bytes; divide the list.")
    try:
        items = decode_body(kind, content)
    except ProtocolError as error:
        raise ClientError(f"{path} has no such list: {error}") from None
    if not items:
        raise ClientError(f"{path} has an empty list.")
    for number, item in enumerate(items, 1):
        try:
            check(item)
        except ClientError as error:
            raise ClientError(f"entry {number} of {path}: {error}") from None
    return items


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX + 1)
