"""Limits of wrong passwords within AXES_COOLOFF_TIME, for account and address, address, account.

The first limit stops a guess at one account. The limit of an address stops one password for many
names; the limit of an account stops guesses from many addresses. Both are higher, because several
people share the address of a company, and an attacker must not lock an account with few requests.
"""

from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Sum

#: Maximum number of wrong passwords from one address, for all names.
ADDRESS_FAILURES_MAX = 30
#: Maximum number of wrong passwords for one name, from all addresses.
ACCOUNT_FAILURES_MAX = 50


class SignInLimits(AxesDatabaseHandler):
    """axes with a limit for each of AXES_LOCKOUT_PARAMETERS, in this order:
    name and address, address, name.
    """

    def get_failures(self, request: Any, credentials: dict[str, Any] | None = None) -> int:
        """Return the number of failures to compare with AXES_FAILURE_LIMIT: the limit itself when
        one of the limits is reached.
        """
        limit = int(settings.AXES_FAILURE_LIMIT)
        limits = (limit, ADDRESS_FAILURES_MAX, ACCOUNT_FAILURES_MAX)
        counts = [
            attempts.aggregate(count=Sum("failures_since_start"))["count"] or 0
            for attempts in self.get_user_attempts(request, credentials)
        ]
        reached = any(count >= most for count, most in zip(counts, limits, strict=True))
        return limit if reached else min(counts[0], limit - 1)

    def reset_user_attempts(self, request: Any, credentials: dict[str, Any] | None = None) -> int:
        """Forget the failures of the signed-in user from this address.

        Failures for other names from the address stay: a user must not reset the limit of guesses
        at other accounts by signing in.
        """
        name = get_client_username(request, credentials)
        attempts = AccessAttempt.objects.filter(username=name, ip_address=request.axes_ip_address)
        return int(attempts.delete()[0])
