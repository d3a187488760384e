"""What the gateway raises. Each kind carries the HTTP status that pages and API answer with.

GatewayError
├── Unusable            400  what was asked for cannot be right, such as an illegal name
├── UnknownCluster      404  no such cluster in this console's settings
├── NotThere            404  no such broker, topic, group or client in the cluster
├── AlreadyThere        409  the name is taken
├── NotAllowedNow       409  the state of the object forbids it
├── Changed             412  somebody changed the object since it was read
├── Refused             502  the cluster answered, and said no
├── ClusterUnreachable  503  name server or all brokers do not answer
└── TooSlow             504  no answer within the deadline
"""

from typing import Any

from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.answers import BrokerFailure
from core_broker.errors import RequestRefused


class GatewayError(Exception):
    """`title` is a short heading, `detail` one sentence of cause, `hint` what to do about it.

    An error is kept and shown to several people, so its own texts are translated when shown.
    """

    status = 502
    kind = "cluster-error"
    title: Any = _("The cluster could not answer")

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


class NotThere(GatewayError):
    status = 404
    kind = "not-found"
    title = _("Not found")


class AlreadyThere(GatewayError):
    status = 409
    kind = "already-exists"
    title = _("The name is taken")


class NotAllowedNow(GatewayError):
    status = 409
    kind = "conflict"
    title = _("Not possible now")


class Changed(GatewayError):
    status = 412
    kind = "changed"
    title = _("Changed in the meantime")


class Refused(GatewayError):
    """A broker or name server said no; `code` and `name` are RocketMQ's."""

    status = 502
    kind = "refused"
    title = _("The cluster refused")

    def __init__(self, refusal: RequestRefused, failures: tuple[BrokerFailure, ...] = ()) -> None:
        super().__init__(str(refusal), hint=refusal.hint, failures=failures)
        self.code = refusal.code
        self.name = refusal.name


class ClusterUnreachable(GatewayError):
    status = 503
    kind = "cluster-unreachable"
    title = _("The cluster cannot be reached")


class TooSlow(GatewayError):
    status = 504
    kind = "too-slow"
    title = _("The cluster did not answer in time")
