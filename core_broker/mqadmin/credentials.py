"""With which key requests are signed: options, variables, or RocketMQ's conf/tools.yml.

    accessKey: rocketmq2
    secretKey: 12345678

The file is $ROCKETMQ_HOME/conf/tools.yml, or $MQADMIN_TOOLS_FILE. Without keys nothing is signed.
"""

import os
from pathlib import Path
from typing import Final

from core_broker.errors import ClientError
from core_broker.remoting.client import RpcHook

TOOLS_FILE_VARIABLE: Final = "MQADMIN_TOOLS_FILE"
TOOLS_FILE_BYTES_MAX: Final = 64 * 1024


def signing_hooks(access_key: str | None, secret_key: str | None) -> list[RpcHook]:
    """Raise ClientError when only one of the two keys is there, or the file cannot be read."""
    if not (access_key or secret_key):
        access_key, secret_key = _keys_of_file()
    if not (access_key or secret_key):
        return []
    if not access_key or not secret_key:
        missing = "accessKey" if not access_key else "secretKey"
        raise ClientError(f"Requests cannot be signed: {missing} is missing.")
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
    usual = Path(home, "conf", "tools.yml") if home else None
    return usual if usual is not None and usual.is_file() else None


def read_flat_yaml(text: str) -> dict[str, str]:
    """The ``key: value`` lines of a file without nesting; quotes and comments are taken off."""
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
