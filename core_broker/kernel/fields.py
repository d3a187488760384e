# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The headers of pulls and offset commits, with ext fields that are named in full.

Compatible with RocketMQ's PullMessageRequestHeader and UpdateConsumerOffsetRequestHeader.
"""

import cython
from cython.cimports.core_broker.kernel.octets import Text, put32, same
from cython.cimports.core_broker.kernel.scan import Header
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t
from cython.cimports.libc.string import memcpy

# Indexes of the fields in Header.fields, behind the fields that are named by a letter.
GROUP = cython.declare(cython.int, 26)
TOPIC = cython.declare(cython.int, 27)
QUEUE_ID = cython.declare(cython.int, 28)
QUEUE_OFFSET = cython.declare(cython.int, 29)
MAX_MSG_NUMS = cython.declare(cython.int, 30)
SYS_FLAG = cython.declare(cython.int, 31)
COMMIT_OFFSET = cython.declare(cython.int, 32)
SUSPEND_TIMEOUT = cython.declare(cython.int, 33)
SUB_VERSION = cython.declare(cython.int, 34)
SUBSCRIPTION = cython.declare(cython.int, 35)
EXPRESSION_TYPE = cython.declare(cython.int, 36)
MAX_MSG_BYTES = cython.declare(cython.int, 37)

#: Maximum size of a source's key, bytes; pulls with longer keys are for the slow path.
KEY_BYTES = cython.declare(cython.int, 2048)
#: Bit of the system flag: the subscription is in the request.
SUBSCRIPTION_FLAG = cython.declare(int64_t, 4)


@cython.cclass
class PullRequest:
    """The fields of a held pull; optional fields may be None."""

    code = cython.declare(int64_t, visibility="readonly")
    opaque = cython.declare(int64_t, visibility="readonly")
    offset = cython.declare(int64_t, visibility="readonly")
    count_max = cython.declare(int64_t, visibility="readonly")
    sys_flag = cython.declare(int64_t, visibility="readonly")
    commit_offset = cython.declare(int64_t, visibility="readonly")
    suspend_ms = cython.declare(int64_t, visibility="readonly")
    sub_version = cython.declare(int64_t, visibility="readonly")
    bytes_max = cython.declare(object, visibility="readonly")
    subscription = cython.declare(str, visibility="readonly")
    expression_type = cython.declare(str, visibility="readonly")


@cython.cclass
class NamedHeader(Header):
    """A header with these fields; after `read`, `read_pull` or `read_commit` reads the numbers."""

    def _note(self, name, value):
        """Keep an ext field, if the kernel uses the field."""
        slot: cython.int = -1
        if name.n == 1:
            slot = name.p[0] - 97 if 97 <= name.p[0] <= 122 else -1
        elif name.n == 5:
            slot = TOPIC if same(name, b"topic", 5) else -1
        elif name.n == 7:
            slot = QUEUE_ID if same(name, b"queueId", 7) else -1
            slot = SYS_FLAG if same(name, b"sysFlag", 7) else slot
        elif name.n == 10:
            slot = MAX_MSG_NUMS if same(name, b"maxMsgNums", 10) else -1
            slot = SUB_VERSION if same(name, b"subVersion", 10) else slot
        elif name.n == 11:
            slot = QUEUE_OFFSET if same(name, b"queueOffset", 11) else -1
            slot = MAX_MSG_BYTES if same(name, b"maxMsgBytes", 11) else slot
        elif name.n == 12:
            slot = COMMIT_OFFSET if same(name, b"commitOffset", 12) else -1
            slot = SUBSCRIPTION if same(name, b"subscription", 12) else slot
        elif name.n == 13:
            slot = GROUP if same(name, b"consumerGroup", 13) else -1
        elif name.n == 14:
            slot = EXPRESSION_TYPE if same(name, b"expressionType", 14) else -1
        elif name.n == 20:
            slot = SUSPEND_TIMEOUT if same(name, b"suspendTimeoutMillis", 20) else -1
        if slot >= 0:
            self.fields[slot] = value

    def read_pull(self):
        """Read the numbers of a pull; false when a number is missing or malformed."""
        self.bytes_max = -1
        self.sub_version = 0
        return (
            self.fields[GROUP].p != cython.NULL
            and self._is_int(QUEUE_ID, cython.address(self.queue_id))
            and self._is_int(MAX_MSG_NUMS, cython.address(self.count_max))
            and self._is_int(SYS_FLAG, cython.address(self.flags))
            and self.number(QUEUE_OFFSET, cython.address(self.offset))
            and self.number(COMMIT_OFFSET, cython.address(self.commit))
            and self.number(SUSPEND_TIMEOUT, cython.address(self.suspend_ms))
            and self.number(SUB_VERSION, cython.address(self.sub_version))
            and self.fields[TOPIC].p != cython.NULL
            and (
                self.fields[MAX_MSG_BYTES].p == cython.NULL
                or (
                    self._is_int(MAX_MSG_BYTES, cython.address(self.bytes_max))
                    and self.bytes_max >= 0
                )
            )
        )

    def read_commit(self):
        """Read the numbers of a commit; false when a number is missing or malformed."""
        self.flags = self.sub_version = 0
        return (
            self.fields[GROUP].p != cython.NULL
            and self.fields[TOPIC].p != cython.NULL
            and self._is_int(QUEUE_ID, cython.address(self.queue_id))
            and self.number(COMMIT_OFFSET, cython.address(self.commit))
            and self.queue_id >= 0
            and self.commit >= 0
        )

    def _is_int(self, field, value):
        """Read an ext field as a whole number of 32 bits."""
        return self.number(field, value) and value[0] == cython.cast(int32_t, value[0])

    def key(self):
        """Return all fields that decide which messages a pull gets; None when they are too long."""
        buffer: uint8_t[2048]
        at: cython.pointer(uint8_t) = buffer
        text: Text
        i: cython.int
        for i in range(GROUP, MAX_MSG_BYTES):
            if QUEUE_ID < i < SUB_VERSION:
                continue
            text = self.fields[i]
            if text.p == cython.NULL:
                text.n = 0
            if at - cython.address(buffer[0]) + text.n + 5 > KEY_BYTES:
                return None
            put32(at, text.n)
            memcpy(at + 4, text.p, text.n)
            at += 4 + text.n
        at[0] = cython.cast(uint8_t, self.flags & SUBSCRIPTION_FLAG)
        return PyBytes_FromStringAndSize(
            cython.cast(cython.p_char, cython.address(buffer[0])),
            at + 1 - cython.address(buffer[0]),
        )

    def text(self, field):
        """Return an ext field as text; None for a missing field."""
        text: Text = self.fields[field]
        if text.p == cython.NULL:
            return None
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, text.p), text.n).decode()

    def pull_request(self):
        """Copy the fields of a pull for its hold."""
        request: PullRequest = PullRequest.__new__(PullRequest)
        request.code = self.code
        request.opaque = self.opaque
        request.offset = self.offset
        request.count_max = self.count_max
        request.sys_flag = self.flags
        request.commit_offset = self.commit
        request.suspend_ms = self.suspend_ms
        request.sub_version = self.sub_version
        request.bytes_max = None if self.bytes_max < 0 else self.bytes_max
        request.subscription = self.text(SUBSCRIPTION)
        request.expression_type = self.text(EXPRESSION_TYPE)
        return request
