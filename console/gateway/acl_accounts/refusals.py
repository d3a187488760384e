"""Refusals of the requests about accounts, explained with the page that helps."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.utils.translation import gettext_lazy as _

from console.gateway.engine.errors import Refused


@contextmanager
def explained() -> Iterator[None]:
    """Give refusals a hint."""
    try:
        yield
    except Refused as refusal:
        refusal.hint = _(
            "The console's requests are not signed, or are signed by an account that is no "
            "administrator. Cluster → Credentials sets the account; accounts and white lists need "
            "an account with admin: true."
        )
        raise
