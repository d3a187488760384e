"""An API server of Kubernetes for Spark's scheduler: stores the objects, and starts no container.

Knows create, get, list and delete of namespaced objects over plain HTTP, no watch: Spark polls.
"""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]
#: Verbs of Kubernetes' access control, by method and whether the path names an object.
VERBS = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("PATCH", True): "patch",
    ("PUT", True): "update",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}
LISTS = {"pods": "PodList", "configmaps": "ConfigMapList", "persistentvolumeclaims": "List"}


class KubernetesApi:
    """Use as a context manager. `created` is called with each new pod, in the server's threads."""

    def __init__(self, created: Callable[[Object], None]) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        #: Resources and verbs that a Role must allow.
        self.used_rights: set[tuple[str, str]] = set()
        self._created = created
        self._lock = threading.Lock()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(*api.read(self.path))

            def do_POST(self) -> None:
                self._answer(*api.create(self.path, self._body()))

            def do_PATCH(self) -> None:
                self._answer(*api.change(self.path, self._body()))

            def do_PUT(self) -> None:
                self.do_PATCH()

            def do_DELETE(self) -> None:
                self._body()
                self._answer(*api.delete(self.path))

            def _body(self) -> Object:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                found: Object = json.loads(raw or b"{}")
                return found

            def _answer(self, status: int, body: Object) -> None:
                api.count(self.command, self.path)
                raw = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def count(self, method: str, path: str) -> None:
        resource, name, query = _parts(path)
        verb = "watch" if "watch" in query else VERBS[method, bool(name)]
        with self._lock:
            self.used_rights.add((resource, verb))

    def of_kind(self, resource: str) -> list[Object]:
        with self._lock:
            return [each for (kind, _), each in self.objects.items() if kind == resource]

    def add(self, resource: str, body: Object) -> Object:
        with self._lock:
            name = body["metadata"]["name"]
            body["metadata"].update(uid=f"uid-{name}", resourceVersion="1")
            self.objects[resource, name] = body
        return body

    def read(self, path: str) -> tuple[int, Object]:
        resource, name, query = _parts(path)
        if name:
            found = self.objects.get((resource, name))
            return (200, found) if found else (404, _status(404))
        wanted = _selector(query)
        items = [each for each in self.of_kind(resource) if _matches(each, wanted)]
        listed = {"kind": LISTS.get(resource, "List"), "apiVersion": "v1", "items": items}
        return 200, {**listed, "metadata": {"resourceVersion": "1"}}

    def create(self, path: str, body: Object) -> tuple[int, Object]:
        resource, _, _ = _parts(path)
        self.add(resource, body)
        if resource == "pods":
            body["status"] = {"phase": "Running", "podIP": "127.0.0.1"}
            self._created(body)
        return 201, body

    def change(self, path: str, body: Object) -> tuple[int, Object]:
        resource, name, _ = _parts(path)
        return 200, self.objects.get((resource, name)) or self.add(resource, body)

    def delete(self, path: str) -> tuple[int, Object]:
        resource, name, query = _parts(path)
        wanted = _selector(query)
        with self._lock:
            for key, each in list(self.objects.items()):
                if key[0] == resource and (key[1] == name or (not name and _matches(each, wanted))):
                    del self.objects[key]
        return 200, _status(200)


def _parts(path: str) -> tuple[str, str, dict[str, list[str]]]:
    """Resource, name ("" for all) and query of a path below a namespace."""
    split = urlsplit(path)
    _, _, rest = split.path.partition("/namespaces/")
    _, resource, *names = [*rest.split("/"), ""] if "/" in rest else ["", "", ""]
    return resource, names[0] if names else "", parse_qs(split.query)


def _selector(query: dict[str, list[str]]) -> list[str]:
    return [part for text in query.get("labelSelector", []) for part in text.split(",")]


def _matches(found: Object, selector: list[str]) -> bool:
    labels = found["metadata"].get("labels", {})
    for part in selector:
        name, is_other, value = part.partition("!=")
        if is_other:
            if labels.get(name) == value:
                return False
        else:
            name, _, value = part.partition("=")
            if labels.get(name) != value:
                return False
    return True


def _status(code: int) -> Object:
    reason = {200: "Success", 404: "NotFound"}[code]
    return {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "metadata": {}}
