"""Console, worker and scheduler are updated and taken back, on one database.

On PostgreSQL, all three run. On SQLite, the console runs alone, and the old one only at last. With
`UPGRADE_CHECKS=all`, and where PostgreSQL is not installed, SQLite has the same test.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from console.launcher.redis import find_server
from tests.support import postgres
from tests.support.cluster import ROOT, Cluster, free_broker_port
from tests.support.console_session import ConsoleSession
from tests.support.old_versions import CONSOLE_PACKAGES, old_tree
from tests.support.processes import stop_program
from tests.up.containers import answers, wait_for
from tests.up.gantry import clean_environment

PASSWORD = "correct horse battery"
DEADLINE_S = 600.0
EVERY = os.environ.get("UPGRADE_CHECKS") == "all"
DATABASES = [
    "SQLite",
    pytest.param(
        "PostgreSQL",
        marks=pytest.mark.skipif(postgres.why_not() is not None, reason=f"{postgres.why_not()}"),
    ),
]
#: Lists with exports of their own, for jobs that wait at the same time.
TABLES = ("topics", "groups", "clients")
INFO = ("--loglevel", "INFO")
#: Options of worker and scheduler, and what they print when they run.
PROGRAMS = {"worker": ("--pool", "threads"), "beat": ("--pidfile=",)}
STARTED = {"worker": " ready.", "beat": "beat: Starting"}
ENDED = {"succeeded", "failed", "cancelled", "lost"}

pytestmark = pytest.mark.timeout(1800)


class Installation:
    """One home, one database and one queue, used by programs of several versions.

    With `has_jobs`, worker and scheduler run beside the console.
    """

    def __init__(self, home: Path, *, has_jobs: bool, **environ: str) -> None:
        self._home = home
        self.has_jobs = has_jobs
        self._port = free_broker_port()
        self._environ = {
            **clean_environment(),
            "DJANGO_SETTINGS_MODULE": "console.settings",
            "GANTRY_HOME": str(home),
            "GANTRY_ADMIN_PASSWORD": PASSWORD,
            **environ,
        }
        #: The cookies of a browser that stays signed in.
        self.cookies: dict[str, str] = {}

    def manage(self, root: Path, *arguments: str) -> None:
        self._run(root, "-m", "django", *arguments)

    def set_up(self, root: Path) -> None:
        self._run(root, "-m", "console.launcher.prepare")

    @contextmanager
    def running(self, root: Path) -> Iterator[ConsoleSession]:
        """The programs of a version, after its set-up step, and the session of the browser."""
        self.set_up(root)
        server = ("uvicorn", "console.asgi:application", "--port", str(self._port))
        celery = ("celery", "-A", "console")
        with ExitStack() as stack:
            logs = {
                name: self._begin(root, stack, *celery, name, *INFO, *options)
                for name, options in PROGRAMS.items()
                if self.has_jobs
            }
            self._begin(root, stack, *server)
            url = f"http://127.0.0.1:{self._port}"
            wait_for(partial(answers, f"{url}/livez"), self._logs)
            for name, log in logs.items():
                wait_for(partial(has_line, log, STARTED[name]), self._logs)
            if not self.cookies:
                self.cookies = ConsoleSession(url, PASSWORD).cookies
            yield ConsoleSession.with_cookies(url, self.cookies)

    def _logs(self) -> list[Path]:
        return sorted(self._home.glob("*.log"))

    def _run(self, root: Path, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=root,
            env=self._environ,
            check=False,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _begin(self, root: Path, stack: ExitStack, *module: str) -> Path:
        log = self._home / f"{len(self._logs())}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-u", "-m", *module],
                cwd=root,
                env=self._environ,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        stack.callback(stop_program, process)
        return log


@pytest.fixture(params=DATABASES)
def installation(
    request: pytest.FixtureRequest, tmp_path: Path, shared_cluster: Cluster
) -> Iterator[Installation]:
    server = find_server()
    if server is None:
        pytest.skip("no Valkey is installed here")
    home = tmp_path / "home"
    home.mkdir()
    environ = {"NAMESRV_ADDR": shared_cluster.namesrv_addr}
    is_sqlite = request.param == "SQLite"
    with ExitStack() as stack:
        port = free_broker_port()
        options = ("--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
        queue = subprocess.Popen(
            [str(server), "--port", str(port), *options], stdout=subprocess.DEVNULL
        )
        stack.callback(stop_program, queue)
        environ["REDIS_URL"] = f"redis://127.0.0.1:{port}/0"
        if not is_sqlite:
            environ["DATABASE_URL"] = stack.enter_context(postgres.PostgreSql()).url
        has_jobs = EVERY or not is_sqlite or postgres.why_not() is not None
        yield Installation(home, has_jobs=has_jobs, **environ)


def test_an_update_and_the_way_back_keep_the_database(
    installation: Installation, tmp_path: Path
) -> None:
    old = old_tree(tmp_path / "old", packages=CONSOLE_PACKAGES)
    newer = newer_migrations(old)
    assert newer, "the schema did not change since the old version"
    jobs: list[int] = []
    if not installation.has_jobs:
        installation.set_up(old)
    # At last, the old programs run on the new tables.
    for root in (old, ROOT, old) if installation.has_jobs else (ROOT, old):
        with installation.running(root) as session:
            use(session, jobs, has_worker=installation.has_jobs)
    # The tables of the old version, for those who want them: the new programs take theirs back.
    for app, name in newer.items():
        installation.manage(ROOT, "migrate", "--no-input", app, name)
    installation.manage(old, "migrate", "--check")
    for root in (old, ROOT) if EVERY else ():
        with installation.running(root) as session:
            use(session, jobs, has_worker=installation.has_jobs)
    installation.set_up(ROOT)


def newer_migrations(old: Path) -> dict[str, str]:
    """The last migration of the old version, by app with newer ones."""
    last = {}
    for folder in sorted(ROOT.glob("console/**/migrations")):
        found, before = names_of(folder), names_of(old / folder.relative_to(ROOT))
        assert before <= found, f"{folder}: a released migration is gone"
        if found != before:
            last[folder.parent.name] = max(before, default="zero")
    return last


def names_of(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("[0-9]*.py")}


def use(session: ConsoleSession, jobs: list[int], *, has_worker: bool) -> None:
    """Find the earlier jobs with the session of the old version, and start another one."""
    for number in jobs:
        assert (state_of(session, number) == "succeeded") == has_worker
    # Without a worker, jobs wait, and a second job of the same list is refused.
    table = TABLES[0 if has_worker else len(jobs)]
    status, answer = session.api("POST", "clusters/local/exports", {"table": table})
    assert status == 202, answer
    number = int(answer["job"])
    if has_worker:
        wait_for(lambda: state_of(session, number) in ENDED, list)
        assert state_of(session, number) == "succeeded"
    assert number not in jobs
    jobs.append(number)


def state_of(session: ConsoleSession, number: int) -> Any:
    status, job = session.api("GET", f"clusters/local/jobs/{number}")
    assert status == 200, job
    return job["state"]


def has_line(log: Path, words: str) -> bool:
    return words in log.read_text()
