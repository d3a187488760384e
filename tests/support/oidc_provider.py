"""A small OpenID Connect provider on a socket: discovery, keys, code flow with PKCE, user info.

Tests change `claims` (a function of the valid claims), `sign` or `metadata` to make it hostile.
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

CLIENT_ID = "gantry"
CLIENT_SECRET = "a secret / with + signs"


def same(value: dict[str, Any]) -> dict[str, Any]:
    return value


class OidcProvider:
    """The provider, and what it knows about one person."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        self.published = [self.key]
        self.person: dict[str, Any] = {
            "sub": "248289761001",
            "preferred_username": "ann",
            "email": "ann@example.org",
            "groups": ["operators"],
        }
        self.claims: Callable[[dict[str, Any]], dict[str, Any]] = same
        self.metadata: Callable[[dict[str, Any]], dict[str, Any]] = same
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.user_info: dict[str, Any] | None = None
        self.is_up = True
        self.requests: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    def authorize(self, url: str) -> str:
        """Sign the person in, as a browser would do at the address; return the callback's query."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT_ID
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        return urlencode({"code": code, "state": query["state"], "iss": self.issuer})

    def _answer(self, method: str, path: str, form: dict[str, str], authorization: str) -> Any:
        if path == "/.well-known/openid-configuration":
            return self.metadata(
                {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "jwks_uri": f"{self.issuer}/keys",
                    "userinfo_endpoint": f"{self.issuer}/me",
                }
            )
        if path == "/keys":
            return KeySet(self.published).as_dict(private=False)
        if path == "/me":
            return self.user_info if self.user_info is not None else {"sub": self.person["sub"]}
        if (method, path) == ("POST", "/token"):
            return self._token(form, authorization)
        return None

    def _token(self, form: dict[str, str], authorization: str) -> Any:
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        asked = self._codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        expected = urlencode({"": CLIENT_SECRET}).removeprefix("=")
        if (
            asked is None
            or pair != f"{CLIENT_ID}:{expected}"
            or challenge != asked["code_challenge"]
            or form["redirect_uri"] != asked["redirect_uri"]
        ):
            return {"error": "invalid_grant"}
        now_s = int(time.time())
        valid = {
            **self.person,
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "exp": now_s + 300,
            "iat": now_s,
            "nonce": asked["nonce"],
        }
        token = self.sign(self.claims(valid))
        return {"access_token": "opaque", "token_type": "Bearer", "id_token": token}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.respond("GET", {})

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                self.respond("POST", {name: each[0] for name, each in parse_qs(data).items()})

            def respond(self, method: str, form: dict[str, str]) -> None:
                provider.requests.append(self.path)
                head = self.headers.get("Authorization", "")
                found = provider._answer(method, self.path, form, head) if provider.is_up else None
                status = 503 if found is None else 400 if "error" in found else 200
                body = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: Any) -> None:
                """Keep the output of tests clean."""

        return Handler
