"""Use an installed wheel, as tools/release.sh does: version, kernel, files, programs, a message.

    python tools/release_check.py VERSION     with the interpreter of the installation

Name server and broker run on free ports, with their data in a temporary folder.
"""

import asyncio
import importlib.metadata
import socket
import subprocess
import sys
import tempfile
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
STOP_S_MAX = 30


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
        asyncio.run(send(f"127.0.0.1:{namesrv}"))
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


async def send(namesrv_addr: str) -> None:
    from gantry import Message, Producer

    async with Producer("release", namesrv_addr) as producer:
        result = await producer.send(Message("release-check", b"hello"))
        assert result.status.name == "SEND_OK", result


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
