"""Django's authentication backend for LDAP.

Names of local accounts are never looked up: their passwords do not leave the console, and they sign
in while the directory is down.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest

from console.accounts.external import account_of, is_local
from console.accounts.ldap_directory import person_of


class LdapBackend(ModelBackend):
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **_more: Any,
    ) -> User | None:
        """Return the account; None for a wrong name or password.

        Raises DirectoryFailed and SignInRefused, which are no wrong passwords.
        """
        if not settings.LDAP.urls or not username or not password or is_local(username):
            return None
        person = person_of(settings.LDAP, username, password)
        if person is None:
            return None
        return account_of(person, settings.LDAP.groups, "CONSOLE_LDAP_GROUPS")
