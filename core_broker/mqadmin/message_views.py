"""Views of a message: lines, a JSON document, and a file with the body."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core_broker.errors import ProtocolError
from core_broker.message.model import MessageExt
from core_broker.mqadmin.files import default_folder, write_file
from core_broker.mqadmin.java_texts import host_text, java, map_text, message_text
from core_broker.mqadmin.times import date_time_ms


def message_lines(message: MessageExt, body_path: Path, *, offset_id: bool) -> Iterator[str]:
    """Yield all fields except the body; the offset id only for commands that print OffsetID."""
    keys = " ".join(message.keys) or None
    entries: list[tuple[str, object]] = [
        ("Topic:", message.topic),
        ("Tags:", f"[{java(message.tags)}]"),
        ("Keys:", f"[{java(keys)}]"),
        ("Queue ID:", message.queue_id),
        ("Queue Offset:", message.queue_offset),
        ("CommitLog Offset:", message.offset_physical),
        ("Reconsume Times:", message.reconsume_times),
        ("Born Timestamp:", date_time_ms(message.born_timestamp)),
        ("Store Timestamp:", date_time_ms(message.store_timestamp)),
        ("Born Host:", host_text(message.born_host)),
        ("Store Host:", host_text(message.store_host)),
        ("System Flag:", message.sys_flag),
        ("Properties:", map_text(message.properties)),
        ("Message Body Path:", body_path),
    ]
    if offset_id:
        entries.insert(0, ("OffsetID:", message.offset_msg_id))
    for entry in entries:
        yield "%-20s %s" % entry  # noqa: UP031 - Java's layout


def message_document(message: MessageExt, *, with_body: bool = True) -> dict[str, Any]:
    document = {
        "msgId": message.msg_id,
        "offsetMsgId": message.offset_msg_id,
        "topic": message.topic,
        "tags": message.tags,
        "keys": message.keys,
        "brokerName": message.broker_name or None,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.offset_physical,
        "reconsumeTimes": message.reconsume_times,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "bornHost": host_text(message.born_host),
        "storeHost": host_text(message.store_host),
        "sysFlag": message.sys_flag,
        "properties": message.properties,
    }
    if with_body:
        document["bodyBase64"] = base64.b64encode(unpacked(message)).decode()
    return document


def unpacked(message: MessageExt) -> bytes:
    """Return the decompressed body; the stored body when decompression fails."""
    try:
        return message.decompressed_body()
    except ProtocolError:
        return message.body


def printed_line(message: MessageExt, charset: str, *, with_body: bool) -> str:
    body = unpacked(message)
    text = body.decode(charset, "replace") if with_body else "NOT PRINT BODY"
    return f"MSGID: {message.msg_id} {message_text(message, body)} BODY: {text}"


async def write_body(message: MessageExt, number: int = 0) -> Path:
    """Write the body to ``/tmp/rocketmq/msgbodys/<message id>`` and return the path."""
    # Producers can set the id property to any text: the path must not leave the folder.
    name = re.sub(r"[^0-9A-Za-z_-]", "_", message.msg_id)[:128]
    suffix = f"_{number}" if number else ""
    return await write_file(default_folder("msgbodys") / f"{name}{suffix}", unpacked(message))
