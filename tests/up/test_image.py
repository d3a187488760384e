"""The image's programs: an unprivileged user, a read-only root, and the environment of the image.

No daemon builds images here. A mount namespace of this machine takes the place of the container:
the installed wheel in /opt/gantry, data in /var/lib/gantry, everything else read-only.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.cluster import ROOT, free_broker_port
from tests.support.processes import stop_program
from tests.up.containers import answers, wait_for
from tests.up.gantry import clean_environment
from tests.up.wheels import build_wheel, unpack

CONTAINERFILE = (ROOT / "deploy" / "image" / "Containerfile").read_text(encoding="utf-8")
USER = "10001"
DEADLINE_S = 120.0

#: Arguments: folder of the wheel, virtual environment, interpreter's folder, command.
CONTAINER = f"""
set -eu
mount --make-rprivate /
stage=$(mktemp -d)
mount -t tmpfs tmpfs "$stage"
mkdir "$stage/gantry" "$stage/libraries" "$stage/python"
mount --bind "$1" "$stage/gantry"
mount --bind "$2" "$stage/libraries"
mount --bind "$3" "$stage/python"
mount --rbind "$stage" /opt
mount -t tmpfs -o mode=755 tmpfs /var/lib
install -d -o {USER} -g {USER} -m 0700 /var/lib/gantry
mount -t tmpfs -o mode=1777 tmpfs /tmp
for each in /opt /opt/gantry /opt/libraries /opt/python /; do mount -o remount,bind,ro "$each"; done
shift 3
cd /var/lib/gantry
exec setpriv --reuid {USER} --regid {USER} --clear-groups --no-new-privs --bounding-set -all "$@"
"""

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        os.geteuid() != 0
        or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode,
        reason="no mount namespaces for this user",
    ),
]


def test_the_constraints_of_the_image_are_versions() -> None:
    sed = re.search(r"^RUN (sed .*?) \\$", CONTAINERFILE, re.M)
    assert sed
    with (ROOT / "requirements.lock").open(encoding="utf-8") as lock:
        assert lock.read(1) == "#"
    command = sed[1].partition(" > ")[0]
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, check=True, capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if not line.lstrip().startswith("#")]
    assert len(lines) > 50
    version = re.compile(r"[\w.-]+(\[[\w,-]+\])?==[\w.+!]+( ;.*)?$")
    wrong = [line for line in lines if not version.match(line)]
    assert wrong == []


class Image:
    """Starts programs as the image would, with a data folder each."""

    def __init__(self, packages: Path, folder: Path) -> None:
        self._packages = packages
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str, **environ: str) -> Path:
        """Start a program and return the file of its output."""
        log = self._folder / f"{len(self._running)}.log"
        with log.open("wb") as output:
            self._running.append(
                subprocess.Popen(
                    self._container(command),
                    env=self._environment(environ),
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )
        return log

    def run(self, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._container(command),
            env=self._environment(environ),
            check=False,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )

    def stop(self) -> list[int]:
        """Stop all programs with SIGTERM; return their exit codes."""
        codes = [stop_program(process, DEADLINE_S) for process in reversed(self._running)]
        self._running.clear()
        return codes

    def _container(self, command: tuple[str, ...]) -> list[str]:
        folders = (str(self._packages), sysconfig.get_path("purelib"), sys.base_prefix)
        return ["unshare", "-m", "sh", "-c", CONTAINER, "sh", *folders, *command]

    def _environment(self, environ: dict[str, str]) -> dict[str, str]:
        text = CONTAINERFILE.rpartition("FROM ")[2]
        own = re.search(r"^ENV ((?:.*\\\n)*.*)$", text, re.M)
        assert own
        values = dict(each.split("=", 1) for each in own[1].replace("\\\n", " ").split())
        system = {name: text for name, text in clean_environment().items() if name == "LANG"}
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        assert shutil.which(python, path=f"{sys.base_prefix}/bin")
        return {
            **system,
            **values,
            "PATH": "/opt/python/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": "/opt/gantry:/opt/libraries",
            "LD_LIBRARY_PATH": "/opt/python/lib",
            **environ,
        }


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("image")
    return unpack(build_wheel(folder / "wheel"), folder / "packages")


@pytest.fixture
def image(packages: Path, tmp_path: Path) -> Iterator[Image]:
    image = Image(packages, tmp_path)
    try:
        yield image
    finally:
        image.stop()


def test_nothing_but_the_data_folder_and_tmp_is_writable(image: Image) -> None:
    program = (
        "import os, json\n"
        "places = '/opt/gantry /opt/python /etc /var/lib /var/lib/gantry /tmp'.split()\n"
        "def ok(place):\n"
        "    try: open(place + '/x', 'w').close()\n"
        "    except OSError: return False\n"
        "    return True\n"
        "print(json.dumps([os.getuid(), os.geteuid(), [p for p in places if ok(p)]]))"
    )
    done = image.run("python", "-c", program)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [int(USER), int(USER), ["/var/lib/gantry", "/tmp"]]


def test_every_program_starts_and_stops(image: Image) -> None:
    ports = {name: free_broker_port() for name in ("namesrv", "broker", "controller")}
    side = {name: free_broker_port() for name in ports}
    addr = f"127.0.0.1:{ports['namesrv']}"
    logs = [
        image.start(
            *("python", "-m", "namesrv"),
            ROCKETMQ_LISTEN_PORT=str(ports["namesrv"]),
            ROCKETMQ_HTTP_PORT=str(side["namesrv"]),
        ),
        image.start(
            *("python", "-m", "core_broker"),
            NAMESRV_ADDR=addr,
            ROCKETMQ_BROKER_IP1="127.0.0.1",
            ROCKETMQ_LISTEN_PORT=str(ports["broker"]),
            ROCKETMQ_HA_LISTEN_PORT=str(ports["broker"] + 1),
            ROCKETMQ_HTTP_PORT=str(side["broker"]),
        ),
        image.start(
            *("python", "-m", "core_broker.controller"),
            ROCKETMQ_CONTROLLER_D_LEGER_PEERS=f"n0-127.0.0.1:{ports['controller']}",
            ROCKETMQ_HTTP_PORT=str(side["controller"]),
        ),
    ]
    for port in side.values():
        wait_for(partial(answers, f"http://127.0.0.1:{port}/readyz"), lambda: logs)
    page = free_broker_port()
    console = ("uvicorn", "console.asgi:application", "--port", str(page), "--no-proxy-headers")
    steps = f"python -m console.launcher.prepare && exec python -m {' '.join(console)}"
    logs.append(image.start("sh", "-c", steps, NAMESRV_ADDR=addr))
    wait_for(partial(answers, f"http://127.0.0.1:{page}/livez"), lambda: logs)
    # uvicorn ends itself with the signal, after its own shutdown.
    assert image.stop() == [-signal.SIGTERM, 0, 0, 0], "\n".join(log.read_text() for log in logs)


def test_no_file_outside_of_the_repository_gets_into_an_image() -> None:
    def names(path: str) -> set[str]:
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        patterns = {line.removeprefix("**/").strip("/") for line in lines}
        return {pattern for pattern in patterns if pattern and not pattern.startswith("#")}

    assert names(".gitignore") - names(".dockerignore") == set()
