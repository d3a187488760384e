"""The requests of the load generator, with placeholders for the varying fields."""

from typing import NamedTuple

from core_broker.auth.signature import ACCESS_KEY, SIGNATURE, signed_fields
from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers.cluster import GetRouteInfoRequestHeader
from core_broker.remoting.headers.consume import PullMessageRequestHeader
from core_broker.remoting.headers.produce import SendMessageRequestHeaderV2

TOPIC = "Bench"
GROUP = "bench"
QUEUES = 8
BODY_BYTES = 1024
PULL_COUNT = 32
#: The account of signed requests.
ACCOUNT = "bench-client"
SECRET = "bench-secret-key"
_SECRET_BYTES = 64

# Fixed width, and unlike any other text in a frame; loadgen.c searches for the same text.
KEY = "KEYKEYKEYKEYKEYK"
_SIGNATURE = "SIGNATURESIGNATURESIGNATURE="
OFFSET = 987_654_321_987_654_321
_SUBSCRIPTION_IN_REQUEST = 4


#: Value in place of the number of messages: a pull that stays at the end of its queue.
TAIL = 0xFFFFFFFF
_SUSPEND_IN_REQUEST = 2


class Template(NamedTuple):
    """One request and its number of messages; 0 for a pull, TAIL for a pull at the end."""

    frame: bytes
    messages: int
    #: Secret key, padded to the block of SHA-1, and signed bytes; empty for an unsigned request.
    signing: bytes = b""


def send_template(number: int, topic: str = TOPIC, body_bytes: int = BODY_BYTES) -> Template:
    """A send of one message with a unique key and a key."""
    properties = f"KEYS\x01{KEY}\x02UNIQ_KEY\x01{KEY}"
    header = _send_header(number, topic, properties, is_batch=False)
    code = RequestCode.SEND_MESSAGE_V2
    return Template(RemotingCommand.request(code, header, b"x" * body_bytes).encode(), 1)


def signed_send_template(number: int, body_bytes: int = BODY_BYTES) -> Template:
    """A send of one message as `send_template`, with AccessKey and Signature."""
    request = RemotingCommand.decode(send_template(number, body_bytes=body_bytes).frame)
    fields = request.ext_fields | {ACCESS_KEY: ACCOUNT}
    content = signed_fields(fields) + request.body
    request.ext_fields = fields | {SIGNATURE: _SIGNATURE}
    return Template(request.encode(), 1, SECRET.encode().ljust(_SECRET_BYTES, b"\0") + content)


def batch_template(
    number: int, messages: int, body_bytes: int = BODY_BYTES, topic: str = TOPIC
) -> Template:
    """A send of several messages, each with a unique key and a key."""
    body = encode_batch(
        Message(topic, b"x" * body_bytes, properties={"KEYS": KEY, "UNIQ_KEY": KEY})
        for _ in range(messages)
    )
    header = _send_header(number, topic, "", is_batch=True)
    code = RequestCode.SEND_BATCH_MESSAGE
    return Template(RemotingCommand.request(code, header, body).encode(), messages)


def route_template(number: int, topics: int) -> Template:
    """A route request for one of `topics` topics, as a client sends it."""
    header = GetRouteInfoRequestHeader(topic=f"{TOPIC}-{number % topics}")
    request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
    return Template(request.encode(), 1)


def tail_template(number: int, topic: str = TOPIC) -> Template:
    """A pull of the next messages of one queue with long polling."""
    sys_flag = _SUBSCRIPTION_IN_REQUEST | _SUSPEND_IN_REQUEST
    return Template(_pull_frame(number, sys_flag, topic), TAIL)


def pull_template(number: int, topic: str = TOPIC) -> Template:
    """A pull of the next messages of one queue."""
    return Template(_pull_frame(number, _SUBSCRIPTION_IN_REQUEST, topic), 0)


def _pull_frame(number: int, sys_flag: int, topic: str) -> bytes:
    header = PullMessageRequestHeader(
        consumer_group=GROUP,
        topic=topic,
        queue_id=number % QUEUES,
        queue_offset=OFFSET,
        max_msg_nums=PULL_COUNT,
        sys_flag=sys_flag,
        commit_offset=0,
        suspend_timeout_millis=1000,
        sub_version=0,
        subscription="*",
        expression_type="TAG",
    )
    return RemotingCommand.request(RequestCode.PULL_MESSAGE, header).encode()


def _send_header(
    number: int, topic: str, properties: str, *, is_batch: bool
) -> SendMessageRequestHeaderV2:
    return SendMessageRequestHeaderV2(
        producer_group=GROUP,
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=number % QUEUES,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        flag=0,
        properties=properties,
        batch=is_batch,
    )
