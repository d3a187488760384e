"""`make profile SCENARIO=send-64x1`: where the broker's time goes under a load, as a flame graph.

py-spy looks at the running broker from outside, Python and compiled code alike, so the broker need
not know. The graph is an SVG for a browser; the widest frames of its event loop are printed too.
"""

import argparse
import html
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.load import SCENARIOS, VARIANTS, begin, run
from benchmarks.processes import running

ROOT: Final = Path(__file__).resolve().parents[1]
RATE_HZ: Final = 500
#: So long the load runs before and after the look.
MARGIN_SECONDS: Final = 2
#: What pulls read.
BACKLOG_MESSAGES: Final = 200_000
SHOWN: Final = 25
#: Everything that the event loop does is above this frame; other threads mostly wait.
LOOP: Final = "run (core_broker/program.py:"
_FRAME: Final = re.compile(
    r"<title>(.+?) \([\d,]+ samples, [\d.]+%\)</title><rect [^>]*"
    r'fg:x="(\d+)" fg:w="(\d+)"'
)


def main() -> None:
    """Load a broker and look at it meanwhile; SystemExit when py-spy may not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("scenario", choices=[*SCENARIOS, *VARIANTS])
    parser.add_argument("--seconds", type=int, default=10, help="to look (%(default)s)")
    parser.add_argument("--output", type=Path, help="(./var/profile-SCENARIO.svg)")
    options = parser.parse_args()
    output = options.output or ROOT / "var" / f"profile-{options.scenario}.svg"
    output.parent.mkdir(exist_ok=True)
    profile(options.scenario, options.seconds, output)
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
            f"py-spy could not look at the broker: {done.stderr.strip()[-500:]}\n"
            "It needs the right to trace: run as root, or set kernel.yama.ptrace_scope to 0."
        )


def widest(svg: str) -> list[tuple[float, str]]:
    """The frames with the largest shares of the event loop's thread, each named once.

    Those around all of it are left out.
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
