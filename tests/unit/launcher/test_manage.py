"""Commands of `manage.py` in a wrong environment: cause, home folder and the setting to change."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 240

pytestmark = pytest.mark.timeout(900)


def run(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    foreign = ("GANTRY_", "CONSOLE_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return subprocess.run(
        [sys.executable, ROOT / "manage.py", *arguments],
        cwd=folder,
        env={**kept, **environ},
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


@pytest.mark.parametrize("command", ["create_token", "changepassword"])
def test_a_home_without_database_names_home_and_setting(tmp_path: Path, command: str) -> None:
    home = tmp_path / "home"
    done = run(tmp_path, command, "admin", GANTRY_HOME=str(home))
    assert done.returncode == 2
    assert f"The home folder is {home}, from GANTRY_HOME." in done.stderr
    assert "Set GANTRY_HOME" in done.stderr
    assert "Traceback" not in done.stderr
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_token_is_created_from_every_working_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environ = {"GANTRY_HOME": str(home), "GANTRY_ADMIN_PASSWORD": "correct horse"}
    assert run(tmp_path, "migrate", "--verbosity=0", **environ).returncode == 0
    assert run(tmp_path, "ensure_admin", **environ).returncode == 0
    done = run(tmp_path, "create_token", "admin", GANTRY_HOME="home")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.split()) == 1


def test_wrong_settings_are_listed_without_traceback(tmp_path: Path) -> None:
    done = run(tmp_path, "create_token", "admin", GANTRY_HOME="home", CONSOLE_REQUESTS_MAX="many")
    assert done.returncode == 2
    assert "CONSOLE_REQUESTS_MAX = 'many': expected a number" in done.stderr
    assert "Traceback" not in done.stderr
