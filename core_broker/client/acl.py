"""Signing requests for brokers with access control; `core_broker/auth/signature.py` has the rule.

Compatible with RocketMQ's AclClientRPCHook; brokers with ACL 1.0 and 2.0 accept the signature.
"""

from core_broker.auth.signature import (
    ACCESS_KEY,
    SECURITY_TOKEN,
    SIGNATURE,
    SigningKey,
    signed_fields,
)
from core_broker.errors import ClientError
from core_broker.remoting.command import RemotingCommand


class AclRpcHook:
    """An RPC hook for a client: ``Producer(…, rpc_hooks=[AclRpcHook(access_key, secret_key)])``.

    Signs every request to brokers and to name servers; name servers ignore the signature. The
    secret key appears neither in ``repr`` nor in logs nor on the wire.
    """

    __slots__ = ("_access_key", "_security_token", "_signing_key")

    def __init__(self, access_key: str, secret_key: str, security_token: str | None = None) -> None:
        if not access_key or not secret_key:
            raise ClientError("An access key and a secret key are needed to sign requests.")
        self._access_key = access_key
        self._signing_key = SigningKey(secret_key)
        self._security_token = security_token

    def before_request(self, addr: str, command: RemotingCommand) -> None:
        """Sign a request before the client sends it."""
        fields = command.ext_fields
        fields[ACCESS_KEY] = self._access_key
        if self._security_token:
            fields[SECURITY_TOKEN] = self._security_token
        fields[SIGNATURE] = self._signing_key.sign(signed_fields(fields), command.body)

    def after_response(
        self, addr: str, command: RemotingCommand, response: RemotingCommand
    ) -> None:
        """Answers are not signed."""

    def __repr__(self) -> str:
        return f"AclRpcHook(access_key={self._access_key!r}, secret_key=***)"

    def __reduce__(self) -> str:
        raise ClientError("Credentials are not pickled; create the hook in the process using it.")
