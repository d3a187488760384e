"""Questions before acts on accounts and tokens that cannot be undone."""

from collections.abc import Callable
from typing import Final

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from knox.models import AuthToken

from console.accounts.models import ExternalIdentity
from console.frame.confirmations import Confirmation


def of_token(token: AuthToken) -> Confirmation:
    """Ask before a token is revoked."""
    facts = getattr(token, "facts", None)
    name = getattr(facts, "name", "") or token.token_key
    lines = [
        _("Programs with the token are refused at once. A revoked token cannot be restored."),
    ]
    address = getattr(facts, "last_used_from", "")
    if address:
        lines.append(_("The token was last used from %(address)s.") % {"address": address})
    return Confirmation(
        question=_("Revoke the token “%(name)s”?") % {"name": name},
        button=_("Revoke"),
        name="revoke",
        value=token.token_key,
        consequences=tuple(lines),
    )


def _of_password(user: User) -> Confirmation:
    return Confirmation(
        question=_("Reset the password of “%(name)s”?") % {"name": user.get_username()},
        button=_("Reset password"),
        name="password",
        consequences=(
            _(
                "Generates a new password and shows the password once. All sessions of the account "
                "end."
            ),
        ),
        icon="key",
    )


def _of_second_factor(user: User) -> Confirmation:
    return Confirmation(
        question=_("Reset the second factor of “%(name)s”?") % {"name": user.get_username()},
        button=_("Reset second factor"),
        name="second-factor",
        consequences=(
            _("The password alone is enough to sign in until the account sets up a new one."),
        ),
        icon="lock",
    )


def _of_disabling(user: User) -> Confirmation:
    return Confirmation(
        question=_("Disable the account “%(name)s”?") % {"name": user.get_username()},
        button=_("Disable"),
        name="off",
        consequences=(
            _("Disabling the account blocks sign-in, ends all sessions and denies all tokens."),
        ),
        icon="lock",
    )


def _of_deletion(user: User) -> Confirmation:
    lines = [
        _(
            "All sessions end, all API tokens are revoked, and the roles, the second factor and "
            "the saved views of the account are lost. A deleted account cannot be restored."
        ),
        _("The audit list keeps the entries of the account under its name."),
    ]
    if ExternalIdentity.objects.filter(user=user).exists():
        lines.append(
            _(
                "The account belongs to a provider of sign-ins or a directory: the next sign-in of "
                "the person creates a new account. Disable the account instead to block sign-in."
            )
        )
    return Confirmation(
        question=_("Delete the account “%(name)s”?") % {"name": user.get_username()},
        button=_("Delete"),
        name="delete",
        consequences=tuple(lines),
    )


#: Questions by the value of the parameter `ask`, on the page of an account.
OF_USER: Final[dict[str, Callable[[User], Confirmation]]] = {
    "password": _of_password,
    "second-factor": _of_second_factor,
    "off": _of_disabling,
    "delete": _of_deletion,
}
