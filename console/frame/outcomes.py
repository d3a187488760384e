"""Page messages with the result of a change: on success one message, else one per failed broker."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from console.gateway.changes import BrokerOutcome


def tell_outcomes(request: HttpRequest, outcomes: Sequence[BrokerOutcome], done: str) -> None:
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if not failed:
        messages.success(request, done)
        return
    took = ", ".join(outcome.broker for outcome in outcomes if outcome.error is None) or "—"
    messages.warning(
        request, _("Partly done: only %(brokers)s applied the change.") % {"brokers": took}
    )
    for outcome in failed:
        messages.error(request, f"{outcome.broker} ({outcome.addr}): {outcome.error}")
