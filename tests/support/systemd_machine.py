"""A machine with a real systemd as process 1, inside of this machine.

    with SystemdMachine(tmp_path) as machine:
        machine.run("systemctl", "start", "gantry-namesrv")

The machine has mounts, processes, network and control groups of its own (systemd_machine.sh): this
tree is /opt/gantry, and nothing that runs there is seen or changed outside. Needs Linux, root and
the program of systemd; `why_impossible` says what is missing.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

import psutil

from tests.support.source_tree import ROOT

SYSTEMD = Path("/lib/systemd/systemd")
SCRIPT = ROOT / "tests" / "support" / "systemd_machine.sh"
START_DEADLINE_S = 60.0
RUN_DEADLINE_S = 240.0
POLL_S = 0.05


def why_impossible() -> str:
    """Return the reason why no systemd can run here; "" when a machine starts."""
    if sys.platform != "linux" or not SYSTEMD.exists():
        return "systemd is not installed here"
    missing = [name for name in ("unshare", "nsenter", "pivot_root") if shutil.which(name) is None]
    if missing:
        return f"a machine with systemd needs {', '.join(missing)} of util-linux"
    if os.geteuid() != 0:
        return "a machine with systemd needs root"
    try:
        with TemporaryDirectory() as folder, SystemdMachine(Path(folder)):
            return ""
    except (OSError, TimeoutError) as error:
        return f"no systemd starts in namespaces here: {error}"


class SystemdMachine:
    """One machine. Use as a context manager; the end kills everything in it."""

    def __init__(self, folder: Path) -> None:
        self._root = folder / "machine"
        self._log = folder / "machine.log"
        self._group = f"gantry-test-{os.getpid()}-{time.monotonic_ns()}"
        self._process: subprocess.Popen[bytes] | None = None
        self._enter: list[str] = []

    def run(
        self, *command: str, check: bool = True, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as root in /opt/gantry of the machine; `check` fails the test."""
        done = subprocess.run(
            [*self._enter, "sh", "-c", 'cd /opt/gantry && exec "$@"', "sh", *command],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **environ},
            check=False,
            capture_output=True,
            text=True,
            timeout=RUN_DEADLINE_S,
        )
        output = done.stdout + done.stderr
        assert not check or done.returncode == 0, f"{' '.join(command)}: {output}"
        return done

    def program(self, name: str, program: Path) -> None:
        """Add a program, and a unit with its name that starts the program; without settings."""
        self.run("install", "-d", "/opt/programs")
        with program.open("rb") as source:
            subprocess.run(
                [
                    *self._enter,
                    "sh",
                    "-c",
                    'cat > "$1" && chmod 755 "$1"',
                    "sh",
                    f"/opt/programs/{name}",
                ],
                stdin=source,
                check=True,
            )
        unit = f"[Service]\\nExecStart=/opt/programs/{name}\\n"
        self.run("sh", "-c", f"printf '{unit}' > /etc/systemd/system/{name}.service")

    def property(self, unit: str, name: str) -> str:
        """Return a property of a unit, as `systemctl show` prints it."""
        return self.run("systemctl", "show", "-P", name, unit).stdout.strip()

    def wait(self, unit: str, name: str, value: str) -> None:
        """Wait until a property of a unit has the value."""
        end = time.monotonic() + RUN_DEADLINE_S
        while (found := self.property(unit, name)) != value:
            assert time.monotonic() < end, f"{unit} has {name}={found}: {self.journal(unit)}"
            time.sleep(POLL_S)

    def journal(self, unit: str) -> str:
        """Return the messages of a unit."""
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", unit, check=False).stdout

    def __enter__(self) -> Self:
        self._root.mkdir()
        python, packages = sys.base_prefix, sysconfig.get_path("purelib")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["unshare", "-m", "sh", SCRIPT, self._root, ROOT, python, packages, self._group],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self._wait_started(self._process)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _wait_started(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_DEADLINE_S
        while True:
            if process.poll() is not None or time.monotonic() > end:
                raise TimeoutError(self._log.read_text(errors="replace")[-2000:].strip())
            # unshare takes the place of the script; its child is the script, and then systemd.
            for child in psutil.Process(process.pid).children():
                if child.name() == "systemd":
                    self._enter = ["nsenter", "-t", str(child.pid), "-a"]
                    state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
                    if state in {"running", "degraded"}:
                        return
            time.sleep(POLL_S)

    def _stop(self) -> None:
        """Kill process 1, and with it every process of the machine; remove the control group."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        with TemporaryDirectory() as folder:
            script = (
                'mount --make-rprivate /; mount -t cgroup2 cgroup2 "$1" && cd "$1" && '
                'find "$2" -depth -type d -exec rmdir {} +'
            )
            for _ in range(int(START_DEADLINE_S / POLL_S)):
                removed = subprocess.run(
                    ["unshare", "-m", "sh", "-c", script, "sh", folder, self._group],
                    check=False,
                    capture_output=True,
                )
                if removed.returncode == 0:
                    return
                time.sleep(POLL_S)
