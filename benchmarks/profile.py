"""`make profile SCENARIO=send-64x1`: the broker's CPU time under a load, as a flame graph.

py-spy samples the running broker from outside, Python and compiled code alike, without changes in
the broker. The graph is an SVG for a browser; the widest frames of the event loop are printed, too.
"""

import html
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import click

from benchmarks.load import SCENARIOS, VARIANTS, begin, run
from benchmarks.processes import running

ROOT: Final = Path(__file__).resolve().parents[1]
RATE_HZ: Final = 500
#: Seconds of load before and after the sampling.
MARGIN_SECONDS: Final = 2
#: Backlog for pulls, messages.
BACKLOG_MESSAGES: Final = 200_000
SHOWN: Final = 25
#: Frame of the event loop: all its work is above. Other threads mostly wait.
LOOP: Final = "run (core_broker/program.py:"
_FRAME: Final = re.compile(
    r"<title>(.+?) \([\d,]+ samples, [\d.]+%\)</title><rect [^>]*"
    r'fg:x="(\d+)" fg:w="(\d+)"'
)


@click.command(context_settings={"show_default": True})
@click.argument("scenario", type=click.Choice([*SCENARIOS, *VARIANTS]))
@click.option("--seconds", type=int, default=10, help="Duration of the sampling.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Default: ./var/profile-SCENARIO.svg."
)
def main(scenario: str, seconds: int, output: Path | None) -> None:
    """Sample a broker under load, and write a flame graph."""
    output = output or ROOT / "var" / f"profile-{scenario}.svg"
    output.parent.mkdir(exist_ok=True)
    profile(scenario, seconds, output)
    for share, frame in widest(output.read_text()):
        print(f"{share:6.1f} %  {frame}")
    print(f"\nwritten to {output}; open it in a browser")


def profile(name: str, seconds: int, output: Path) -> None:
    """Write the flame graph of a broker under the load of one scenario."""
    asked, settings = VARIANTS.get(name, (name, ""))
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), settings) as cluster:
        batch = SCENARIOS["batch-32"]
        run(batch, cluster.broker_addr, seconds=60, messages_max=BACKLOG_MESSAGES)
        whole = seconds + 2 * MARGIN_SECONDS
        load = begin(SCENARIOS[asked], cluster.broker_addr, seconds=whole)
        time.sleep(MARGIN_SECONDS)
        command = [_py_spy(), "record", "--pid", str(cluster.broker.process.pid), "--native"]
        command += ["--rate", str(RATE_HZ), "--duration", str(seconds), "--output", str(output)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        load.figures()
    if done.returncode != 0:
        sys.exit(
            f"py-spy could not sample the broker: {done.stderr.strip()[-500:]}\n"
            "It needs the right to trace: run as root, or set kernel.yama.ptrace_scope to 0."
        )


def widest(svg: str) -> list[tuple[float, str]]:
    """The frames with the largest shares of the event loop's thread, each named once.

    Frames that enclose the whole loop are omitted.
    """
    frames = [(html.unescape(name), int(x), int(width)) for name, x, width in _FRAME.findall(svg)]
    loops = [(width, x) for name, x, width in frames if name.startswith(LOOP)]
    whole, start = max(loops or [(width, x) for _, x, width in frames])
    shares: dict[str, float] = {}
    for name, x, width in frames:
        if width < whole and start <= x and x + width <= start + whole:
            shares[name] = max(shares.get(name, 0.0), 100 * width / whole)
    ordered = sorted(((share, frame) for frame, share in shares.items()), reverse=True)
    return ordered[:SHOWN]


def _py_spy() -> str:
    found = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    return found or sys.exit("py-spy is missing: make .venv/.ready installs it.")


if __name__ == "__main__":
    main()
