"""/login/…: sign-in with console accounts. Scripts should use an API token, without sign-in."""

from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate, logout
from django.http import QueryDict
from django.utils.translation import gettext as _
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from console.accounts.second_factor import has_second_factor
from console.accounts.sign_in import hours_of, sign_in
from console.api.parsers import BoundedJSONParser
from console.classic.base import ClassicCall, plain_request, success
from console.frame.access import Need, Role, needs, role_of
from console.gateway import Unusable
from console.web.security import is_own_origin

#: Classic's user roles.
NORMAL, SUPER = 0, 1
FIELD_CHARS_MAX = 150


@needs(Need.OPEN)
class Check(ClassicCall):
    asks_cluster = False

    def get(self, request: Request) -> Response:
        return success({"logined": request.user.is_authenticated, "loginRequired": True})


@needs(Need.OPEN)
class Login(ClassicCall):
    asks_cluster = False
    parser_classes = [BoundedJSONParser, FormParser, MultiPartParser]

    def post(self, request: Request) -> Response:
        """Sign in with user and password as JSON, form or query string; failures are limited."""
        origin, host = request.headers.get("Origin", ""), request.headers.get("Host", "")
        if not is_own_origin(origin, host):
            raise Unusable(_("Cross-site sign-in is not allowed."))
        fields: dict[str, Any] = request.query_params.dict()
        sent = request.data
        if isinstance(sent, dict):
            fields |= sent.dict() if isinstance(sent, QueryDict) else sent
        name, password = (str(fields.get(field, "")) for field in ("username", "password"))
        if max(len(name), len(password)) > FIELD_CHARS_MAX or "\x00" in name + password:
            raise Unusable(_("User or password is wrong."))
        user = authenticate(plain_request(request), username=name, password=password)
        if user is None:
            raise Unusable(_("User or password is wrong, or too many failed attempts."))
        if settings.SECOND_FACTOR == "required" or has_second_factor(user):
            raise Unusable(_("This account needs a second factor: use an API token."))
        sign_in(plain_request(request), user, user.backend, hours_of(user))
        kind = SUPER if role_of(user) is Role.ADMINISTRATOR else NORMAL
        return success(
            {
                "loginUserName": user.get_username(),
                "loginUserRole": kind,
                "contextPath": request.META.get("SCRIPT_NAME", ""),
            }
        )


@needs(Need.OPEN)
class Logout(ClassicCall):
    asks_cluster = False

    def post(self, request: Request) -> Response:
        logout(plain_request(request))
        return success({"logined": False})
