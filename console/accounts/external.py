"""Accounts of people whom an OpenID Connect provider or LDAP knows.

The first sign-in creates the account, without a password. Each sign-in sets the roles from the
groups; whoever is in no mapped group is refused. An account with the same name that belongs to
somebody else, such as a local account, is never taken over; nor is an account created whose name
looks like that of another one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.accounts.changes import USERS_MAX, keep_role, roles_of
from console.accounts.models import SUBJECT_CHARS_MAX, CustomRole, ExternalIdentity
from console.accounts.names import account_like, check_name
from console.audit.recording import audited_as
from console.frame.access import Role
from console.gateway import GatewayError, Unusable, now_ms
from console.identity_settings import EVERYBODY, Groups

ACTION = "user.external"
USERNAME_CHARS_MAX = 150
#: Maximum number of groups of a person that are compared.
GROUPS_OF_PERSON_MAX = 5_000


class SignInRefused(GatewayError):
    """The person is known, but may not sign in; the texts name the setting."""

    status = 403
    kind = "sign-in"
    title = _("Sign-in refused")


class ProviderFailed(GatewayError):
    """The provider or directory did not answer, or its answer cannot be used."""

    status = 503
    kind = "identity-provider"
    title = _("Sign-in failed")


@dataclass(frozen=True, slots=True)
class Person:
    """What an issuer says about somebody."""

    issuer: str
    subject: str
    username: str
    groups: frozenset[str]
    email: str = ""


def account_of(person: Person, mapping: Groups, setting: str) -> User:
    """Return the account of a person, with the roles of the groups.

    `setting` names the mapping in errors. Raises SignInRefused.
    """
    known = ExternalIdentity.objects.filter(issuer=person.issuer, subject=person.subject)
    identity = known.select_related("user__profile").first()
    user = identity.user if identity else None
    role, custom = mapped_roles(person.groups, mapping, setting)
    if role is None:
        if user is not None:
            _update(person, user, Role.NONE, [])  # open sessions and tokens lose the roles too
        raise SignInRefused(
            _("None of your groups has a role in this console."),
            hint=format_lazy(_("An administrator maps groups to roles by {name}."), name=setting),
        )
    if user is not None and not user.is_active:
        raise SignInRefused(_("The account is disabled."))
    user = _update(person, user, role, custom)
    ExternalIdentity.objects.filter(user=user).update(last_sign_in_ms=now_ms())
    return user


def _update(person: Person, user: User | None, role: Role, custom: list[CustomRole]) -> User:
    """Give the account the roles, with an audit row for a change; without an account, create it."""
    before = roles_of(user) if user else None
    after = {"role": role.value, "roles": sorted(each.name for each in custom)}
    if before != after:
        with audited_as(user, ACTION, target=person.username, before=before) as entry:
            user = user or _created(person)
            _set_roles(user, role, custom)
            entry.after = {**after, "issuer": person.issuer}
    assert user is not None
    return user


def mapped_roles(
    groups: Iterable[str], mapping: Groups, setting: str
) -> tuple[Role | None, list[CustomRole]]:
    """Return the highest built-in role of the groups, and the further roles; None: no role.

    Groups are compared without case. Raises SignInRefused for a role that does not exist.
    """
    own = {group.casefold() for group in list(groups)[:GROUPS_OF_PERSON_MAX]} | {EVERYBODY}
    names = {role for group, role in mapping if group.casefold() in own}
    built_in = [Role(name) for name in names if name in Role.values]
    wanted = names - set(Role.values)
    custom = list(CustomRole.objects.filter(name__in=wanted))
    if missing := wanted - {each.name for each in custom}:
        raise SignInRefused(
            format_lazy(
                _("{setting} names a role that does not exist: {roles}"),
                setting=setting,
                roles=", ".join(sorted(missing)),
            )
        )
    if not names:
        return None, []
    return max(built_in, key=lambda role: role.rank, default=Role.NONE), custom


def is_local(username: str) -> bool:
    """True for the name of an account that no provider manages."""
    return User.objects.filter(username__iexact=username, external__isnull=True).exists()


def is_external(user: User) -> bool:
    return ExternalIdentity.objects.filter(user=user).exists()


def _created(person: Person) -> User:
    name = User.normalize_username(person.username)
    try:
        check_name(name)
    except Unusable as fault:
        raise SignInRefused(fault.detail) from fault
    if not 0 < len(name) <= USERNAME_CHARS_MAX or not 0 < len(person.subject) <= SUBJECT_CHARS_MAX:
        raise SignInRefused(_("The provider's name for you is empty or too long."))
    if User.objects.count() >= USERS_MAX:
        raise SignInRefused(format_lazy(_("There are {count} accounts already."), count=USERS_MAX))
    taken = SignInRefused(
        format_lazy(_("The name “{name}” belongs to another account of this console."), name=name),
        hint=_("An administrator can choose another claim or attribute for names."),
    )
    if account_like(name) is not None:
        raise taken
    try:
        with transaction.atomic():
            user = User.objects.create_user(name, email=person.email[:254])
            facts: dict[str, Any] = {"issuer": person.issuer, "subject": person.subject}
            ExternalIdentity.objects.create(user=user, **facts)
    except IntegrityError:
        raise taken from None
    return user


def _set_roles(user: User, role: Role, custom: list[CustomRole]) -> None:
    """Set the roles without asking who gives them: the mapping is a setting of the operator."""
    with transaction.atomic():
        user.profile.roles.set(custom)
        user.profile.__dict__.pop("custom_permissions", None)
        keep_role(user, role)
