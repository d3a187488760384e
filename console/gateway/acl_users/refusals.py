"""Refusals of the codes 3001 to 3010, explained with the setting or the page that helps."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.errors import Refused
from console.gateway.processes import NoAccessControl
from core_broker.remoting.codes import ResponseCode

#: Parts of the remarks of brokers without users: Gantry's, and those of RocketMQ 5.3. RocketMQ has
#: the second one without authenticationMetadataProvider.
_OFF_REMARKS = ("authenticationEnabled", "An system error occurred, please try again later")


@contextmanager
def explained() -> Iterator[None]:
    """Raise NoAccessControl for a cluster without users; give other refusals a hint."""
    try:
        yield
    except Refused as refusal:
        if refusal.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise NoAccessControl(
                _("The brokers have no users and access control lists (ACL 2.0)."),
                hint=_(
                    "ACL 2.0 needs Gantry or RocketMQ 5.3. Brokers of RocketMQ 4 have accounts in "
                    "plain_acl.yml (ACL 1.0); “mqadmin updateAclConfig” changes them."
                ),
                failures=refusal.failures,
            ) from refusal
        if any(part in refusal.detail for part in _OFF_REMARKS):
            raise NoAccessControl(
                format_lazy(_("The brokers answered: {answer}"), answer=refusal.detail),
                hint=_(
                    "Set authenticationEnabled=true and authorizationEnabled=true in the broker's "
                    "configuration, and a first super user in initAuthenticationUser; RocketMQ "
                    "5.3 also needs authenticationMetadataProvider and "
                    "authorizationMetadataProvider. Then restart the broker."
                ),
                failures=refusal.failures,
            ) from refusal
        refusal.hint = _(
            "The console's requests are not signed, or are signed by an account without "
            "permission. Cluster → Credentials sets the account; users and lists need a super "
            "user."
        )
        raise
