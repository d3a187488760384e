"""Audit lines of denied and administrative requests, one JSON object per line.

    time_ms · event "denied" or "administration" · address · account · code · name of the code
    denied: reason, resource, rule      administration: how (the identity was established), target

A line never has the signature, a secret key, other ext fields or the body of a request.
"""

from collections.abc import Callable

import msgspec

from core_broker.auth.contracts import Identity, Refusal, Request
from core_broker.auth.refusals import shown_name
from core_broker.remoting.codes import RequestCode as Code

#: Requests that change a broker, a name server or their data, beyond sends and consumption.
ADMINISTRATION = frozenset(
    {
        Code.UPDATE_AND_CREATE_TOPIC,
        Code.UPDATE_AND_CREATE_TOPIC_LIST,
        Code.DELETE_TOPIC_IN_BROKER,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        Code.DELETE_SUBSCRIPTIONGROUP,
        Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
        Code.UPDATE_BROKER_CONFIG,
        Code.UPDATE_AND_CREATE_ACL_CONFIG,
        Code.DELETE_ACL_CONFIG,
        Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        Code.UPDATE_ACCESS_ACCOUNT,
        Code.AUTH_CREATE_USER,
        Code.AUTH_UPDATE_USER,
        Code.AUTH_DELETE_USER,
        Code.AUTH_CREATE_ACL,
        Code.AUTH_UPDATE_ACL,
        Code.AUTH_DELETE_ACL,
        Code.INVOKE_BROKER_TO_RESET_OFFSET,
        Code.CLONE_GROUP_OFFSET,
        Code.SET_GROUP_OFFSETS,
        Code.KICK_CLIENT,
        Code.RESUME_CHECK_HALF_MESSAGE,
        Code.CONSUME_MESSAGE_DIRECTLY,
        Code.CLEAN_EXPIRED_CONSUMEQUEUE,
        Code.CLEAN_UNUSED_TOPIC,
        Code.DELETE_EXPIRED_COMMITLOG,
        Code.SET_MESSAGE_REQUEST_MODE,
        Code.PUT_KV_CONFIG,
        Code.DELETE_KV_CONFIG,
        Code.WIPE_WRITE_PERM_OF_BROKER,
        Code.ADD_WRITE_PERM_OF_BROKER,
        Code.DELETE_TOPIC_IN_NAMESRV,
        Code.UPDATE_NAMESRV_CONFIG,
    }
)
#: Ext fields that name the object of an administrative request, without secrets.
_TARGETS = (
    *("topic", "group", "groupName", "clientId", "accessKey", "username", "subject"),
    *("brokerName", "key"),
)
_NAMES = {code.value: code.name for code in Code}


class AuditTrail:
    """An observer of a gate: gives a line for each denied or administrative request to `write`."""

    def __init__(self, write: Callable[[bytes], None], now_ms: Callable[[], int]) -> None:
        self._write = write
        self._now_ms = now_ms

    def before(self, address: str, request: Request) -> None:
        """Do nothing: the rules decide."""

    def admitted(self, address: str, request: Request, identity: Identity) -> None:
        """Write an administrative request."""
        if request.code in ADMINISTRATION:
            fields = request.ext_fields
            targets = {name: shown_name(fields[name]) for name in _TARGETS if name in fields}
            self._line(
                "administration",
                address,
                request,
                identity.account,
                how=str(identity.how),
                target=targets,
            )

    def refused(self, address: str, request: Request, refusal: Refusal) -> None:
        """Write a denied request."""
        self._line(
            "denied",
            address,
            request,
            refusal.account,
            reason=refusal.reason,
            resource=shown_name(refusal.resource),
            rule=shown_name(refusal.rule),
        )

    def _line(
        self, event: str, address: str, request: Request, account: str, **details: object
    ) -> None:
        line = {
            "time_ms": self._now_ms(),
            "event": event,
            "address": address,
            "account": shown_name(account),
            "code": request.code,
            "name": _NAMES.get(request.code, ""),
            **details,
        }
        self._write(msgspec.json.encode(line) + b"\n")
