"""The keys of an account, and RocketMQ's file with the keys of a tool, conf/tools.yml.

    accessKey: rocketmq2
    secretKey: 12345678

`securityToken` is optional. Compatible with AclUtils.getAclRPCHook of RocketMQ.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core_broker.client.acl import AclRpcHook
from core_broker.durable_files import replace_file
from core_broker.errors import ClientError

#: Bytes read of a file with keys; the rest is ignored.
FILE_BYTES_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Credentials:
    """Access key, secret key and, for temporary credentials, the security token.

    `repr` hides the secrets. Raises ClientError when one of the two keys is missing.
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.access_key or not self.secret_key:
            missing = "secretKey" if self.access_key else "accessKey"
            raise ClientError(f"Requests cannot be signed: {missing} is missing.")

    def hook(self) -> AclRpcHook:
        """Return a hook that signs the requests of a client."""
        return AclRpcHook(self.access_key, self.secret_key, self.security_token or None)

    @classmethod
    def from_file(cls, path: Path) -> "Credentials | None":
        """Read a file like conf/tools.yml; None without keys. Raises ClientError with the path."""
        try:
            with path.open(encoding="utf-8") as file:
                values = read_flat_yaml(file.read(FILE_BYTES_MAX))
        except (OSError, UnicodeDecodeError) as error:
            raise ClientError(f"{path} cannot be read: {error}.") from None
        access_key, secret_key = values.get("accessKey", ""), values.get("secretKey", "")
        if not access_key and not secret_key:
            return None
        try:
            return cls(access_key, secret_key, values.get("securityToken", ""))
        except ClientError as problem:
            raise ClientError(f"{path}: {problem}") from None

    def save(self, path: Path) -> None:
        """Write a file for `from_file` that only the owner can read.

        Raises OSError, and ClientError for a key that the format cannot hold.
        """
        values = {"accessKey": self.access_key, "secretKey": self.secret_key}
        if self.security_token:
            values["securityToken"] = self.security_token
        lines = [f"{name}: {_quoted(value)}\n" for name, value in values.items()]
        replace_file(path, ["".join(lines).encode()], is_private=True)


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


def _quoted(text: str) -> str:
    for form in (f'"{text}"', f"'{text}'", text):
        if read_flat_yaml(f"key: {form}") == {"key": text}:
            return form
    raise ClientError("A key with line breaks, or with both kinds of quotes, cannot be saved.")
