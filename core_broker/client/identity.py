"""The identity of a client: client ids, and the unique keys of messages.

Compatible with RocketMQ's ClientConfig.buildMQClientId and MessageClientIDSetter.
"""

import os
import secrets
import threading
import time

from core_broker.config import local_address
from core_broker.message.ids import UniqKeyFactory

_keys: UniqKeyFactory | None = None
_keys_pid = -1
#: Clients may run on event loops of several threads.
_keys_lock = threading.Lock()


def now_ms() -> int:
    """Milliseconds since 1970: the clock for born timestamps and trace records."""
    return time.time_ns() // 1_000_000


def new_client_id(instance_name: str | None = None) -> str:
    """Return ``ip@instance``. Without an instance name each client of the process gets a unique
    id, as with Java's pid#nanoTime."""
    return f"{local_address()}@{instance_name or f'{os.getpid()}#{time.monotonic_ns()}'}"


def new_uniq_key() -> str:
    """The next unique key of the process; a forked child does not repeat keys of the parent."""
    global _keys, _keys_pid  # noqa: PLW0603 - a process has a single counter by definition
    with _keys_lock:
        if _keys is None or _keys_pid != os.getpid():
            _keys_pid = os.getpid()
            _keys = UniqKeyFactory(local_address(), _keys_pid, secrets.randbits(32))
        return _keys.create(now_ms())
