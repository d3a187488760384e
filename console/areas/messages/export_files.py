"""A message as a row of a file. Bodies with a schema are exported as JSON, text bodies as text,
binary bodies and bodies that do not fit their schema as Base64."""

import base64
from typing import Any, Final

from console.areas.messages.body import sent_body, text_of
from console.frame.formats import exact
from console.gateway.messages.schemas.decoder import Decoder
from console.gateway.messages.stored import MessageRef
from core_broker.message.model import MessageExt

COLUMNS: Final = (
    *("msg_id", "offset_msg_id", "topic", "broker", "queue_id", "queue_offset"),
    *("stored_ms", "stored", "born_ms", "born_host", "tags", "keys", "reconsume_times"),
    *("properties", "body", "body_encoding", "body_is_cut"),
)
CUT: Final = "body_is_cut"


def body_cells(message: MessageExt, decoder: Decoder) -> tuple[str, str]:
    """The body and its encoding: the message type of a schema, an encoding of text, or base64."""
    body, _compression, _problem = sent_body(message)
    decoded = decoder.decode(message)
    if decoded is None:
        text, encoding = text_of(body)
    else:
        text, encoding = decoded.text if not decoded.misfit else None, decoded.label
    return (base64.b64encode(body).decode(), "base64") if text is None else (text, encoding)


def row_of(ref: MessageRef, decoder: Decoder) -> dict[str, Any]:
    """A message as a row of any file."""
    message = ref.message
    text, encoding = body_cells(message, decoder)
    host, port = message.born_host
    return {
        "msg_id": message.msg_id,
        "offset_msg_id": message.offset_msg_id,
        "topic": message.topic,
        "broker": ref.broker.name,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "stored_ms": message.store_timestamp,
        "stored": exact(message.store_timestamp),
        "born_ms": message.born_timestamp,
        "born_host": f"{host}:{port}",
        "tags": message.tags or "",
        "keys": message.keys,
        "reconsume_times": message.reconsume_times,
        "properties": dict(message.properties),
        "body": text,
        "body_encoding": encoding,
        "body_is_cut": False,
    }
