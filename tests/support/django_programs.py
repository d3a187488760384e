"""Programs of tests with another database than that of the test process, such as PostgreSQL.

Django has one configuration in a process.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAM_TIMEOUT_S = 300


def printed_json(module: str, database_url: str, home: Path) -> Any:
    """Run a module with a database and an empty home; return the JSON of its last printed line."""
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database_url,
            "GANTRY_HOME": str(home),
            "DJANGO_SETTINGS_MODULE": "console.settings",
        },
        capture_output=True,
        text=True,
        timeout=PROGRAM_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
