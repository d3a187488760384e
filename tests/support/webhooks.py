"""A receiver of notices: a real HTTP server on this machine that stores what it gets."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON_OK = b'{"errcode":0,"errmsg":"ok"}'


@dataclass
class Hook:
    """The requests in their order; `answers` are the next statuses, then 200."""

    url: str
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    body: bytes = JSON_OK

    @property
    def notices(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _path, _headers, body in list(self.requests)]

    def events(self, rule: str = "") -> list[str]:
        """Return the events of the notices, of one rule or of all."""
        return [each["event"] for each in self.notices if rule in ("", each["rule"])]


@contextmanager
def webhook() -> Iterator[Hook]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = hook.answers.pop(0) if hook.answers else 200
            hook.requests.append((self.path, headers, body))
            self.send_response(status)
            if status in (301, 302, 307):
                self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
            self.send_header("Content-Length", str(len(hook.body)))
            self.end_headers()
            self.wfile.write(hook.body)

        def log_message(self, *_args: Any) -> None:
            """Write nothing to standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook = Hook(f"http://127.0.0.1:{server.server_port}/hook?key=url-secret-7")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
