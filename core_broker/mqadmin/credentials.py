"""The keys that sign requests: from options, environment variables, or RocketMQ's conf/tools.yml.

The file is $MQADMIN_TOOLS_FILE, else $ROCKETMQ_HOME/conf/tools.yml. Without keys, requests are sent
unsigned.
"""

import os
from pathlib import Path
from typing import Final

from core_broker.errors import ClientError
from core_broker.remoting.client import RpcHook

TOOLS_FILE_VARIABLE: Final = "MQADMIN_TOOLS_FILE"


def signing_hooks(access_key: str | None, secret_key: str | None) -> list[RpcHook]:
    """Return the hooks that sign requests, none without keys.

    Raises ClientError for one key without the other, and for an unreadable tools.yml.
    """
    path = None if access_key or secret_key else _tools_file()
    if path is None and not access_key and not secret_key:
        return []
    from core_broker.client.credentials import Credentials

    try:
        credentials = (
            Credentials(access_key or "", secret_key or "")
            if path is None
            else Credentials.from_file(path)
        )
    except ClientError as problem:
        raise ClientError(
            f"{problem} Set both keys by options, variables or conf/tools.yml."
        ) from None
    return [] if credentials is None else [credentials.hook()]


def _tools_file() -> Path | None:
    named = os.environ.get(TOOLS_FILE_VARIABLE)
    if named:
        return Path(named)
    home = os.environ.get("ROCKETMQ_HOME")
    default = Path(home, "conf", "tools.yml") if home else None
    return default if default is not None and default.is_file() else None
