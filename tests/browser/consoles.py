"""Further consoles beside the one of `manage.py up`: for another path, or another cluster."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from tests.browser.conftest import PASSWORD, ROOT, Gantry
from tests.browser.waiting import wait_until
from tests.support.processes import stop_program


@contextmanager
def running_console(
    home: Path, namesrv_addr: str, prefix: str = "/", **environment: str
) -> Iterator[Gantry]:
    """Start a console with a database of its own below `prefix`; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {
        **os.environ,
        "GANTRY_HOME": str(home),
        "GANTRY_ADMIN_PASSWORD": PASSWORD,
        "NAMESRV_ADDR": namesrv_addr,
        "CONSOLE_PREFIX": prefix,
        **environment,
    }
    run = [sys.executable, "-m"]
    subprocess.run([*run, "console.launcher.prepare"], cwd=ROOT, env=env, check=True)
    serve = ["uvicorn", "console.asgi:application", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen([*run, *serve], cwd=ROOT, env=env)
    try:
        wait_until(lambda: status(port, f"{prefix}livez") == 200, f"the console below {prefix}")
        yield Gantry(f"http://127.0.0.1:{port}{prefix}".rstrip("/"), namesrv_addr)
    finally:
        stop_program(process)


def status(port: int, path: str) -> int | None:
    """The status of a GET; None without an answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()
