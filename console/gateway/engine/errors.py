"""The errors of the gateway. Each class carries the HTTP status of the page and of the API.

GatewayError
├── Unusable            400  the request is invalid, for example an illegal name
├── UnknownCluster      404  the console's settings list no such cluster
├── NotFound            404  the cluster has no such broker, topic, group or client
├── AlreadyExists       409  the name is taken
├── NotAllowedNow       409  the state of the object forbids it
├── PreconditionFailed  412  the object changed after the caller read it
├── Refused             502  the cluster answered with an error code
├── Busy                503  the console does too much at the same time
├── ClusterUnreachable  503  the name server or all brokers do not answer
└── TooSlow             504  no answer within the deadline
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.answers import BrokerFailure
from core_broker.errors import RequestRefused

#: Value of `Retry-After` while a cluster does not answer, seconds.
RETRY_AFTER_S = 5


class GatewayError(Exception):
    """`title` is a short heading, `detail` one sentence of cause, `hint` the remedy.

    The texts are lazy: the cache returns an error to several people, and pages translate the texts.
    `members` are further members of the API's problem.
    """

    status = 502
    kind = "cluster-error"
    title: Any = _("The cluster could not answer")
    #: Seconds of the header `Retry-After`; 0 for no header.
    retry_after_s = 0
    members: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self, detail: Any, *, hint: Any = "", failures: tuple[BrokerFailure, ...] = ()
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.failures = failures


class Unusable(GatewayError):
    status = 400
    kind = "unusable"
    title = _("This cannot be done")


class ReadOnly(GatewayError):
    status = 403
    kind = "read-only"
    title = _("The cluster is read-only")
    members = MappingProxyType({"code": "read_only"})

    def __init__(self, cluster: str) -> None:
        super().__init__(
            format_lazy(
                _("The cluster “{name}” is read-only: the console refuses changes."), name=cluster
            ),
            hint=_("An administrator can allow changes on the page “Read-only” of the cluster."),
        )


class MaskedFields(GatewayError):
    """The answer would show, or send on, fields that are masked for the user."""

    status = 403
    kind = "masked"
    title = _("Fields are masked for you")
    members = MappingProxyType({"code": "masked"})

    def __init__(self, topic: str) -> None:
        super().__init__(
            _("Fields of this message are masked for you."),
            hint=format_lazy(
                _("The permission {permission} shows them."),
                permission=f"messages:unmasked:{topic}",
            ),
        )


class UnknownCluster(GatewayError):
    status = 404
    kind = "unknown-cluster"
    title = _("No such cluster")

    def __init__(self, name: str) -> None:
        known = ", ".join(settings.CONSOLE_CLUSTERS)
        super().__init__(
            format_lazy(_("This console does not know a cluster named “{name}”."), name=name),
            hint=format_lazy(
                _("Known are: {known}. The setting CONSOLE_CLUSTERS lists them."), known=known
            ),
        )


class NotFound(GatewayError):
    status = 404
    kind = "not-found"
    title = _("Not found")


class AlreadyExists(GatewayError):
    status = 409
    kind = "already-exists"
    title = _("The name is taken")


class NotAllowedNow(GatewayError):
    status = 409
    kind = "conflict"
    title = _("Not possible now")


class PreconditionFailed(GatewayError):
    """`etag` is that of the present state; empty for an object that does not exist."""

    status = 412
    kind = "changed"
    title = _("Changed in the meantime")

    def __init__(self, detail: Any, *, hint: Any = "", etag: str = "") -> None:
        super().__init__(detail, hint=hint)
        self.etag = etag


class Refused(GatewayError):
    """A broker or name server answered with an error; `code` and `name` are RocketMQ's."""

    status = 502
    kind = "refused"
    title = _("The cluster refused")

    def __init__(self, refusal: RequestRefused, failures: tuple[BrokerFailure, ...] = ()) -> None:
        super().__init__(str(refusal), hint=refusal.hint, failures=failures)
        self.code = refusal.code
        self.name = refusal.name


class Busy(GatewayError):
    status = 503
    kind = "busy"
    title = _("The console is busy")
    retry_after_s = 2


class ClusterUnreachable(GatewayError):
    status = 503
    kind = "cluster-unreachable"
    title = _("The cluster cannot be reached")
    retry_after_s = RETRY_AFTER_S


class TooSlow(GatewayError):
    status = 504
    kind = "too-slow"
    title = _("The cluster did not answer in time")
    retry_after_s = RETRY_AFTER_S
