"""The report of `tools/charts.py`: rendered objects and findings."""

import functools
import json
import subprocess
from typing import Any

from tests.support.cluster import ROOT

PYTHON = ROOT / "build" / "charts" / "bin" / "python"
DEADLINE_S = 300.0


@functools.cache
def chart_report() -> Any:
    done = subprocess.run(
        [PYTHON, "tools/charts.py"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
