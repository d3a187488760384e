"""`make bench-peers` measures signed sends and sends with TLS on Gantry and on Apache's brokers."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.load import SIGNED, TLS, TLS_SIGNED, compile_generator
from benchmarks.peer_brokers import JAVA_4, JAVA_5, OURS, PEERS
from tests.compat import installing
from tests.support.cluster import ROOT

RUN_SECONDS_MAX = 600
PARTS = {"signed": SIGNED | TLS_SIGNED, "tls": TLS}

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + RUN_SECONDS_MAX + 60)


@pytest.mark.parametrize("part", PARTS)
def test_a_short_run_has_all_rows(part: str, tmp_path: Path) -> None:
    require_programs()
    output = tmp_path / "bench-peers.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.peers", "--only", part, "--no-fill-memory"),
            *("--seconds", "0.3", "--rounds", "1", "--warm-up", "0"),
            *("--peers", f"{JAVA_4},{JAVA_5},{OURS}"),
            *("--home", str(tmp_path / "home"), "--json", str(output)),
            *("--page", str(tmp_path / "page.md")),
        ],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    measured = json.loads(output.read_text())[part]
    assert list(measured) == list(PARTS[part])
    for brokers in measured.values():
        assert list(brokers) == [OURS, JAVA_5, JAVA_4]
        assert all(each["rate"] > 0 for each in brokers.values())
    title = {"signed": "TLS, signed, 1 x 64", "tls": "TLS, 1 connection x 64"}[part]
    (row,) = (line for line in done.stdout.splitlines() if line.startswith(title))
    *_, ratio_to_java_4, _target = row.split()
    assert float(ratio_to_java_4) > 0
    # The page needs all parts.
    assert not (tmp_path / "page.md").exists()


def require_programs() -> None:
    if shutil.which("cc") is None or shutil.which("openssl") is None:
        pytest.skip("needs a C compiler and the program openssl")
    try:
        compile_generator(tls=True)
        for name in (JAVA_4, JAVA_5):
            PEERS[name].install()
    except SystemExit as reason:
        pytest.skip(f"a load with TLS needs OpenSSL's headers: {reason}")
    except installing.CannotInstall as reason:
        pytest.skip(f"Java's brokers: {reason}")
