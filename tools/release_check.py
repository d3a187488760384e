"""Use an installed wheel, as tools/release.sh does: version, kernel, files, programs, a message.

    python tools/release_check.py VERSION     with the interpreter of the installation

Name server and broker run on free ports, with their data in a temporary folder; the message is
that of README.md.
"""

import importlib.metadata
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import ExitStack
from pathlib import Path

PROGRAMS = ("gantry", "mqadmin", "mqbroker", "mqcontroller", "mqnamesrv", "mqstore")
MODULES = (
    *("core_broker.kernel.sends", "console.settings", "spark_jobs", "gantry.sync"),
    *("trace.scan", "console.gateway.traces.records", "spark_jobs.jobs.run"),
)
READY = "boot success"
START_S_MAX = 60
SEND_S_MAX = 60
STOP_S_MAX = 30
README = Path(__file__).resolve().parent.parent / "README.md"
README_ADDR = "127.0.0.1:9876"


def main() -> int:
    version = sys.argv[1]
    installed = importlib.metadata.version("gantry")
    assert installed == version, f"{installed} is installed, not {version}"
    programs = Path(sys.executable).parent
    missing = [name for name in PROGRAMS if not (programs / name).exists()]
    assert not missing, f"programs are missing: {missing}"
    import console

    here = Path(console.__file__).resolve()
    assert here.is_relative_to(Path(sys.prefix).resolve()), f"{here} is not installed"
    for name in ("static/gantry/frame.css", "docs/settings.md", "NOTICE"):
        assert (here.parent / "files" / name).exists(), name
    for module in MODULES:
        __import__(module)
    with tempfile.TemporaryDirectory() as folder:
        seconds = send_a_message(programs, Path(folder))
    sys.stdout.write(f"gantry {version}: name server and broker ready in {seconds:.2f} s\n")
    return 0


def send_a_message(programs: Path, folder: Path) -> float:
    """Start both servers, and send a message; return the seconds until both were ready."""
    with ExitStack() as ending:
        began = time.perf_counter()
        namesrv = free_port()
        start(ending, programs / "mqnamesrv", folder, listenPort=namesrv)
        start(
            *(ending, programs / "mqbroker", folder),
            listenPort=free_port(),
            namesrvAddr=f"127.0.0.1:{namesrv}",
            brokerIP1="127.0.0.1",
            storePathRootDir=folder / "store",
        )
        seconds = time.perf_counter() - began
        program = readme_program(f"127.0.0.1:{namesrv}")
        subprocess.run([sys.executable, "-c", program], check=True, cwd=folder, timeout=SEND_S_MAX)
        listed = subprocess.run(
            [programs / "mqadmin", "topicList", "-n", f"127.0.0.1:{namesrv}"],
            check=True,
            capture_output=True,
            text=True,
            timeout=SEND_S_MAX,
        )
        assert "orders" in listed.stdout.split(), listed.stdout
        return seconds


def start(ending: ExitStack, program: Path, folder: Path, **settings: object) -> None:
    """Start a server, and wait for its ready line; `ending` stops the server."""
    conf = folder / f"{program.name}.conf"
    common = {"bindAddress": "127.0.0.1", "httpPort": 0, "kvConfigPath": folder / "kvConfig.json"}
    if program.name == "mqbroker":
        del common["kvConfigPath"]
    lines = [f"{key}={value}\n" for key, value in {**common, **settings}.items()]
    conf.write_text("".join(lines), encoding="utf-8")
    process = subprocess.Popen([program, "-c", conf], stdout=subprocess.PIPE, text=True)
    ending.callback(process.wait, STOP_S_MAX)
    ending.callback(process.terminate)
    assert process.stdout is not None
    ending.callback(process.stdout.close)
    deadline = time.monotonic() + START_S_MAX
    for line in process.stdout:
        if READY in line:
            return
        assert time.monotonic() < deadline, f"{program.name} is not ready"
    raise AssertionError(f"{program.name} did not start")


def readme_program(addr: str) -> str:
    """The program of README.md, which sends a message, with the address of a name server."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)
    imports, _, body = code.partition("\n\n")
    assert README_ADDR in body
    body = textwrap.indent(body.replace(README_ADDR, addr), "    ")
    return f"import asyncio\n{imports}\nasync def main():\n{body}\nasyncio.run(main())\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
