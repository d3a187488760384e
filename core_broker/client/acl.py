"""Signing requests for brokers with access control.

    AccessKey, SecurityToken   go into the ext fields
    Signature                  Base64(HmacSHA1(secret key, content))
    content                    the values of all ext fields but Signature, by key, then the body

Compatible with RocketMQ's AclClientRPCHook and AclSigner; brokers with ACL 1.0 and 2.0 accept the
signature.
"""

import hmac
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha1
from typing import Final

from core_broker.errors import ClientError
from core_broker.remoting.command import RemotingCommand

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"  # noqa: S105 - the name of a field
SIGNATURE: Final = "Signature"


class AclRpcHook:
    """An RPC hook for a client: ``Producer(…, rpc_hooks=[AclRpcHook(access_key, secret_key)])``.

    Signs every request to brokers and to name servers; name servers ignore the signature. The
    secret key appears neither in ``repr`` nor in logs nor on the wire.
    """

    __slots__ = ("_access_key", "_secret_key", "_security_token")

    def __init__(self, access_key: str, secret_key: str, security_token: str | None = None) -> None:
        if not access_key or not secret_key:
            raise ClientError("An access key and a secret key are needed to sign requests.")
        self._access_key = access_key
        self._secret_key = secret_key.encode()
        self._security_token = security_token

    def before_request(self, addr: str, command: RemotingCommand) -> None:
        """Sign a request before the client sends it."""
        fields = command.ext_fields
        fields[ACCESS_KEY] = self._access_key
        if self._security_token:
            fields[SECURITY_TOKEN] = self._security_token
        fields[SIGNATURE] = signature(self._secret_key, content(fields, command.body))

    def after_response(
        self, addr: str, command: RemotingCommand, response: RemotingCommand
    ) -> None:
        """Answers are not signed."""

    def __repr__(self) -> str:
        return f"AclRpcHook(access_key={self._access_key!r}, secret_key=***)"

    def __reduce__(self) -> str:
        raise ClientError("Credentials are not pickled; create the hook in the process using it.")


def content(fields: Mapping[str, str], body: bytes) -> bytes:
    """Return the signed bytes of a request."""
    # Java sorts by UTF-16 units; beyond the first plane the order differs from code points.
    names = sorted(fields.keys() - {SIGNATURE}, key=lambda name: name.encode("utf-16-be"))
    return "".join(fields[name] for name in names).encode() + body


def signature(secret_key: bytes, signed: bytes) -> str:
    """Return the Base64 signature of the content."""
    return b64encode(hmac.new(secret_key, signed, sha1).digest()).decode()
