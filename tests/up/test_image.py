"""The image: its Containerfile's steps, and its programs as containers.

The steps run in overlays of this machine's root (tests/up/containerfile.py). A container has own
namespaces of mounts, processes and network: its program is process 1, an unprivileged user
without capabilities, on a read-only root, and uses the ports of the image.

By default pip installs the packages of the tests' environment, and the common servers are started.
IMAGE_CHECKS=all installs from the package index with bytecode, and starts every program.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.support.cluster import ROOT
from tests.up.containerfile import Builder, Stage, copy_context
from tests.up.containers import wait_for
from tests.up.wheelhouse import pack_installed

EVERY = os.environ.get("IMAGE_CHECKS") == "all"
CONTAINERFILE = (ROOT / "deploy" / "image" / "Containerfile").read_text(encoding="utf-8")
DEADLINE_S = 300.0
#: Commands in the head of the file, as `#     command    description`.
COMMANDS = [
    shlex.split(re.split(r"\s{2,}", line)[0])
    for line in re.findall(r"^#     (\S.*)$", CONTAINERFILE, re.M)
    if not line.startswith("podman ")
]

#: A word of each command that a test starts.
STARTED = ("prepare", "namesrv", "core_broker", "controller", "uvicorn", "up", "worker", "beat")

#: Arguments: root, volume's folder and place, user, group, working folder, then `NAME=value`s and
#: the command.
CONTAINER = """
set -eu
mount --make-rprivate /
root=$1
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$2" "$root$3"
mount -t proc proc "$root/proc"
ip link set lo up
user=$4 group=$5 folder=$6
shift 6
exec chroot "$root" setpriv --reuid "$user" --regid "$group" --clear-groups --no-new-privs \\
    --bounding-set -all env -i -C "$folder" "$@"
"""

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        os.geteuid() != 0
        or subprocess.run(["unshare", "-mpnf", "true"], check=False, capture_output=True).returncode
        or shutil.which("apt-get") is None,
        reason="the steps of the image need root, namespaces and apt-get",
    ),
]


class Container:
    """A program of the image, started with a volume; `network` is a container with its network."""

    def __init__(
        self,
        image: "Image",
        command: list[str],
        volume: Path,
        network: "Container | None" = None,
        **environ: str,
    ) -> None:
        self._image = image
        self.log = volume.with_name(f"{volume.name}-{len(image.started)}.log")
        namespaces = ["unshare", "-m", "-p", "-f"]
        if network:
            namespaces = ["nsenter", f"--net=/proc/{network.pid}/ns/net", *namespaces]
        else:
            namespaces += ["-n"]
        user, _, group = image.stage.configuration["USER"].text.partition(":")
        place = image.stage.configuration["VOLUME"].text
        words = (str(image.stage.root), str(volume), place, user, group, image.stage.folder)
        values = [f"{k}={v}" for k, v in {**image.stage.environ, **environ}.items()]
        script = ("sh", "-c", CONTAINER, "sh", *words, *values)
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                image.builder.inside(*namespaces, *script, *command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        image.started.append(self)

    @property
    def pid(self) -> int:
        """The process that is number 1 in the container."""
        [child] = psutil.Process(self._process.pid).children()
        return child.pid

    def printed(self) -> str:
        return self.log.read_text(errors="replace")

    def is_healthy(self) -> bool:
        """Run the health check of the image in the container."""
        assert self._process.poll() is None, self.printed()
        if not psutil.Process(self._process.pid).children():
            return False
        return self.execute(self._image.stage.configuration["HEALTHCHECK"].words).returncode == 0

    def execute(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run another command in the container."""
        user, _, group = self._image.stage.configuration["USER"].text.partition(":")
        enter = ["nsenter", "-t", str(self.pid), "-m", "-p", "-n", "-r", "setpriv"]
        enter += ["--reuid", user, "--regid", group, "--clear-groups", "env", "-i"]
        values = [f"{k}={v}" for k, v in self._image.stage.environ.items()]
        return subprocess.run(
            [*enter, *values, *command],
            check=False,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )

    def wait(self) -> int:
        return self._process.wait(DEADLINE_S)

    def stop(self) -> int:
        """Send the image's stop signal to process 1; return the exit code."""
        os.kill(self.pid, signal.Signals[self._image.stage.configuration["STOPSIGNAL"].text])
        return self.wait()

    def kill(self) -> None:
        """Kill the container; a container that has ended is no error."""
        if self._process.poll() is None:
            with suppress(psutil.NoSuchProcess):
                for child in psutil.Process(self._process.pid).children():
                    child.kill()
        self.wait()


class Image:
    """The built image."""

    def __init__(self, builder: Builder, stage: Stage, folder: Path) -> None:
        self.builder = builder
        self.stage = stage
        self.started: list[Container] = []
        self._folder = folder

    def volume(self, name: str) -> Path:
        """Make a volume from the image's folder, as container engines do."""
        place = self._folder / name
        root = self.stage.root
        origin = f"{root}{self.stage.configuration['VOLUME'].text}"
        copy = self.builder.inside("cp", "-a", origin, str(place))
        subprocess.run(copy, check=True, timeout=DEADLINE_S)
        return place


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder = tmp_path_factory.mktemp("image")
    copy_context(ROOT, folder / "context")
    add_compiled_modules(folder / "context")
    wheels = None if EVERY else pack_installed(folder / "wheels")
    builder = Builder(folder, folder / "context", hidden=ROOT, wheels=wheels)
    image = None
    try:
        image = Image(builder, builder.build(CONTAINERFILE), folder)
        yield image
    finally:
        for container in image.started if image else []:
            container.kill()
        builder.close()


def add_compiled_modules(context: Path) -> None:
    """Add the kernel of this tree where it is current: compilers take minutes for it."""
    for module in [*(ROOT / "core_broker").rglob("*.so"), *(ROOT / "trace").glob("*.so")]:
        shutil.copy2(module, context / module.relative_to(ROOT))


def test_nothing_but_the_data_folder_and_tmp_is_writable(image: Image) -> None:
    program = (
        "import os, json, core_broker.kernel.sends\n"
        "places = '/opt/gantry /usr/local /etc /var/lib /var/lib/gantry /tmp'.split()\n"
        "def ok(place):\n"
        "    try: open(place + '/x', 'w').close()\n"
        "    except OSError: return False\n"
        "    return True\n"
        "print(json.dumps([os.getpid(), os.getuid(), [p for p in places if ok(p)]]))"
    )
    container = Container(image, ["python", "-c", program], image.volume("none"))
    assert container.wait() == 0, container.printed()
    assert json.loads(container.printed()) == [1, 10001, ["/var/lib/gantry", "/tmp"]]


def test_worker_and_console_have_their_clients_of_redis_and_postgresql(image: Image) -> None:
    """A worker loads its transport at the start, and not with its modules."""
    program = (
        "import channels_redis.core, psycopg\n"
        "from console.celery import app\n"
        "print(type(app.connection_for_write().transport).__module__)"
    )
    redis = {"REDIS_URL": "redis://127.0.0.1:1/0"}
    container = Container(image, ["python", "-c", program], image.volume("clients"), **redis)
    assert container.wait() == 0, container.printed()
    assert container.printed().split() == ["kombu.transport.redis"]


def test_the_image_has_no_tools_of_the_build(image: Image) -> None:
    packages = {"Cython", "setuptools", "pip"}
    library = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    found = image.builder.inside("ls", f"{image.stage.root}/opt/gantry/{library}")
    names = subprocess.run(found, check=True, capture_output=True, text=True).stdout.split()
    assert {"core_broker", "console", "django"} <= set(names)
    assert packages & set(names) == set()


def test_servers_are_healthy_and_stop(image: Image) -> None:
    """Each server runs alone, with default ports and default settings."""
    setup = Container(image, command_with("prepare"), image.volume("console"))
    words = ("namesrv", "core_broker", *(["controller"] if EVERY else []))
    servers = [Container(image, command_with(word), image.volume(word)) for word in words]
    assert image.stage.configuration["CMD"].words in COMMANDS
    assert setup.wait() == 0, setup.printed()
    volume = setup.log.with_name("console")
    servers.append(Container(image, command_with("uvicorn"), volume))
    for server in servers:
        wait_for(server.is_healthy, lambda: [each.log for each in servers])
    assert {server.stop() for server in servers} == {0}, servers[-1].printed()


@pytest.mark.skipif(not EVERY, reason="IMAGE_CHECKS=all starts every program")
def test_everything_runs_in_one_container(image: Image) -> None:
    volume = image.volume("everything")
    everything = Container(image, command_with("up"), volume)
    wait_for(partial(has_printed, everything, "Gantry is ready"), lambda: [everything.log])
    assert everything.is_healthy()
    done = everything.execute(["mqadmin", "clusterList", "-n", "127.0.0.1:9876"])
    assert "broker-a" in done.stdout, done.stderr
    # A further worker and scheduler, with the database and the queue of the others.
    [conf] = volume.rglob("valkey.conf")
    settings = dict(line.split(maxsplit=1) for line in conf.read_text().splitlines() if " " in line)
    port, password = settings["port"], settings["requirepass"]
    redis = f"redis://:{password}@127.0.0.1:{port}/0"
    jobs = [
        Container(image, command_with(word), volume, everything, REDIS_URL=redis)
        for word in ("worker", "beat")
    ]
    for job, line in zip(jobs, (" ready.", "beat: Starting"), strict=True):
        wait_for(partial(has_printed, job, line), lambda: [each.log for each in jobs])
        assert job.is_healthy()
    assert [job.stop() for job in jobs] == [0, 0], [job.printed() for job in jobs]
    assert everything.stop() == 0, everything.printed()


def test_each_command_in_the_head_of_the_file_is_started() -> None:
    assert sorted(map(command_with, STARTED)) == sorted(COMMANDS)


def has_printed(container: Container, text: str) -> bool:
    return text in container.printed()


def command_with(word: str) -> list[str]:
    """Return the only command of the image with the word, or with a module of that name."""
    found = [
        each for each in COMMANDS if any(part == word or part.endswith(f".{word}") for part in each)
    ]
    assert len(found) == 1, found
    return found[0]


def test_the_constraints_of_the_image_are_versions() -> None:
    sed = re.search(r"^RUN (sed .*?) \\$", CONTAINERFILE, re.M)
    assert sed
    command = sed[1].partition(" > ")[0]
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, check=True, capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if not line.lstrip().startswith("#")]
    assert len(lines) > 50
    version = re.compile(r"[\w.-]+(\[[\w,-]+\])?==[\w.+!]+( ;.*)?$")
    assert [line for line in lines if not version.match(line)] == []


def test_no_file_outside_of_the_repository_gets_into_an_image() -> None:
    def names(path: str) -> set[str]:
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        patterns = {line.removeprefix("**/").strip("/") for line in lines}
        return {pattern for pattern in patterns if pattern and not pattern.startswith("#")}

    assert names(".gitignore") - names(".dockerignore") == set()
