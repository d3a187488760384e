"""The keys that sign requests: from options, environment variables, or RocketMQ's conf/tools.yml.

    accessKey: rocketmq2
    secretKey: 12345678

The file is $MQADMIN_TOOLS_FILE, else $ROCKETMQ_HOME/conf/tools.yml. Without keys, requests are sent
unsigned.
"""

import os
from pathlib import Path
from typing import Final

from core_broker.errors import ClientError
from core_broker.remoting.client import RpcHook

TOOLS_FILE_VARIABLE: Final = "MQADMIN_TOOLS_FILE"
#: Bytes read of tools.yml; the rest is ignored.
TOOLS_FILE_BYTES_MAX: Final = 64 * 1024


def signing_hooks(access_key: str | None, secret_key: str | None) -> list[RpcHook]:
    """Return the hooks that sign requests, none without keys.

    Raises ClientError for one key without the other, and for an unreadable tools.yml.
    """
    if not (access_key or secret_key):
        access_key, secret_key = _keys_of_file()
    if not (access_key or secret_key):
        return []
    if not access_key or not secret_key:
        missing = "accessKey" if not access_key else "secretKey"
        raise ClientError(
            f"Requests cannot be signed: {missing} is missing; "
            f"set both keys by options, variables or conf/tools.yml."
        )
    from core_broker.client.acl import AclRpcHook

    return [AclRpcHook(access_key, secret_key)]


def _keys_of_file() -> tuple[str | None, str | None]:
    path = _tools_file()
    if path is None:
        return None, None
    try:
        with path.open(encoding="utf-8") as file:
            values = read_flat_yaml(file.read(TOOLS_FILE_BYTES_MAX))
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{path} cannot be read: {error}.") from None
    return values.get("accessKey"), values.get("secretKey")


def _tools_file() -> Path | None:
    named = os.environ.get(TOOLS_FILE_VARIABLE)
    if named:
        return Path(named)
    home = os.environ.get("ROCKETMQ_HOME")
    default = Path(home, "conf", "tools.yml") if home else None
    return default if default is not None and default.is_file() else None


def read_flat_yaml(text: str) -> dict[str, str]:
    """Return the ``key: value`` lines of a flat YAML file, without quotes and comments."""
    values = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        key = key.strip()
        if colon and key and not key.startswith("#"):
            values[key] = _scalar(value.strip())
    return values


def _scalar(text: str) -> str:
    for quote in ('"', "'"):
        if text.startswith(quote) and (end := text.find(quote, 1)) > 0:
            return text[1:end]
    return text.partition(" #")[0].strip()
