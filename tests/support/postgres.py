"""A PostgreSQL server of this machine's programs, in a folder of its own.

    with PostgreSql() as server:
        server.url

`find_postgres` returns the folder of the programs, or None. PostgreSQL refuses to run as root: then
the user `postgres` of the package runs the server.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from tests.support.processes import stop_program

USER = "gantry"
OWNER = "postgres"
START_TIMEOUT_S = 120.0
POLL_S = 0.05
#: A power cut is not simulated: the server may skip the syncs of the disk.
INITDB = ("-A", "trust", "-E", "UTF8", "--no-sync")
OPTIONS = ("fsync=off", "listen_addresses=127.0.0.1", "unix_socket_directories=", "timezone=UTC")


def find_postgres() -> Path | None:
    """Return the folder with `postgres` and `initdb`: of the PATH, else of the newest package."""
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    packages = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return packages[-1].parent if packages else None


def why_not() -> str | None:
    """Return why no server can run here, or None."""
    programs = find_postgres()
    if programs is None:
        return "no PostgreSQL on the PATH or below /usr/lib/postgresql"
    if os.geteuid() == 0 and OWNER not in {each.pw_name for each in pwd.getpwall()}:
        return f"PostgreSQL refuses to run as root, and there is no user {OWNER!r}"
    return None


class PostgreSql:
    """A running server with an empty database."""

    def __init__(self) -> None:
        programs = find_postgres()
        assert programs is not None
        self._programs = programs
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"postgres://{USER}@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        # Outside of pytest's folders: those belong to the user of the tests alone.
        self._folder = Path(tempfile.mkdtemp(prefix="gantry-postgres-"))
        as_owner: dict[str, Any] = {}
        if os.geteuid() == 0:
            shutil.chown(self._folder, OWNER)
            as_owner = {"user": OWNER, "group": OWNER, "extra_groups": []}
        data, log = self._folder / "data", self._folder / "log.txt"
        run = {"cwd": self._folder, **as_owner}
        initdb = [self._programs / "initdb", "-D", data, "-U", USER, *INITDB]
        subprocess.run(list(map(str, initdb)), check=True, capture_output=True, **run)
        options = [part for each in OPTIONS for part in ("-c", each)]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", data, "-p", str(self.port), *options],
                stdout=output,
                stderr=subprocess.STDOUT,
                **run,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                raise AssertionError(f"PostgreSQL did not start:\n{log.read_text()}")
            time.sleep(POLL_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stop_program(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode(), values).fetchall()

    def _answers(self) -> bool:
        try:
            self.rows("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True
