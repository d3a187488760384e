"""Runs the probes of containers as the kubelet does, at ports of this machine."""

import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

KINDS = ("startupProbe", "livenessProbe", "readinessProbe")
TIMEOUT_S = 30.0
NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def passes(container: dict[str, Any], kind: str, ports: Mapping[int, int], **environ: str) -> bool:
    """Return the outcome of a probe. `ports` are this machine's, by the container's ports.

    A command gets `environ`; HTTP statuses from 200 to 399 pass.
    """
    probe = container[kind]
    if "exec" in probe:
        command = probe["exec"]["command"]
        done = subprocess.run(
            command, env={**os.environ, **environ}, check=False, timeout=TIMEOUT_S
        )
        return done.returncode == 0
    action = probe.get("httpGet") or probe["tcpSocket"]
    port = ports[_number(container, action["port"])]
    try:
        if "httpGet" not in probe:
            socket.create_connection(("127.0.0.1", port), TIMEOUT_S).close()
            return True
        request = urllib.request.Request(f"http://127.0.0.1:{port}{action['path']}")
        for header in action.get("httpHeaders", []):
            request.add_header(header["name"], header["value"])
        return 200 <= int(NO_PROXY.open(request, timeout=TIMEOUT_S).status) < 400
    except OSError:
        return False


def _number(container: dict[str, Any], port: int | str) -> int:
    if isinstance(port, int):
        return port
    return next(int(each["containerPort"]) for each in container["ports"] if each["name"] == port)
