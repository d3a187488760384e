"""A signed-in person at a console, over HTTP: pages with the session cookie, forms with the CSRF
token, the REST API as a browser calls it.
"""

import json
from http.client import HTTPConnection, HTTPResponse
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode, urlsplit

REQUEST_TIMEOUT_S = 60.0
CSRF_COOKIE = "gantry_csrf"


class ConsoleSession:
    """A session of `admin`, with a connection per request. `cookies` are those of the browser."""

    def __init__(self, url: str, password: str) -> None:
        self.cookies: dict[str, str] = {}
        self._address = urlsplit(url).netloc
        sign_in = self.ask("GET", "/")[0].headers.get("Location", "/").split("?")[0]
        self.ask("GET", sign_in)
        self.post(sign_in, {"username": "admin", "password": password})

    @classmethod
    def with_cookies(cls, url: str, cookies: dict[str, str]) -> "ConsoleSession":
        """The same browser at another console."""
        session = cls.__new__(cls)
        session.cookies = dict(cookies)
        session._address = urlsplit(url).netloc
        return session

    def ask(
        self, method: str, path: str, body: str | None = None, kind: str = ""
    ) -> tuple[HTTPResponse, bytes]:
        """Send a request; return the response and its body."""
        headers = {
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
            "Content-Type": kind or "application/x-www-form-urlencoded",
            "X-CSRFToken": self.cookies.get(CSRF_COOKIE, ""),
        }
        connection = HTTPConnection(self._address, timeout=REQUEST_TIMEOUT_S)
        try:
            connection.request(method, f"/{path.lstrip('/')}", body, headers)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        for line in response.headers.get_all("Set-Cookie", ()):
            self.cookies.update({k: v.value for k, v in SimpleCookie(line).items()})
        return response, answer

    def post(self, path: str, form: dict[str, str]) -> HTTPResponse:
        """Send a form."""
        more = {"csrfmiddlewaretoken": self.cookies[CSRF_COOKIE]}
        return self.ask("POST", path, urlencode({**form, **more}))[0]

    def api(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Call the REST API; return the status and the JSON."""
        data = None if body is None else json.dumps(body)
        response, answer = self.ask(method, f"/api/v1/{path}", data, "application/json")
        return response.status, json.loads(answer or b"null")
