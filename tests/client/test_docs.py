"""docs/client.md: every program prints the documented output, and every setting is documented.

docs/quickstart.md: the program, and the commands that look at what the program left.
"""

import asyncio
import os
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from core_broker.client import ConsumerSettings, LitePullSettings, ProducerSettings
from tests.client.receiving import ClusterAddrs
from tests.support.cluster import ROOT
from tests.support.document_blocks import blocks_of, run_blocks, run_program

PAGE = ROOT / "docs" / "client.md"
PROGRAM = re.compile(r"## (?P<title>[^\n]+)(?:(?!\n## ).)*?```python\n(?P<code>.*?)```\n\n"
                     r"```text\n(?P<output>.*?)```", re.DOTALL)  # fmt: skip
PROGRAMS = {
    found["title"]: (found["code"], found["output"]) for found in PROGRAM.finditer(PAGE.read_text())
}
TIMEOUT_S = 180


def test_no_program_is_passed_over() -> None:
    assert len(PROGRAMS) == PAGE.read_text().count("```python") == 13


@pytest.mark.parametrize("title", PROGRAMS)
async def test_a_program_prints_what_the_page_says(
    quick_cluster: ClusterAddrs, title: str, tmp_path: Path
) -> None:
    code, output = PROGRAMS[title]
    program = tmp_path / "program.py"
    program.write_text(code)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        str(program),
        env={
            **os.environ,
            "NAMESRV_ADDR": quick_cluster.namesrv_addr,
            "PYTHONPATH": str(ROOT),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(TIMEOUT_S):
        printed, complaints = await process.communicate()
    assert complaints.decode() == ""
    assert (process.returncode, printed.decode()) == (0, output)


def test_the_quick_start_prints_what_the_page_says(quick_cluster: ClusterAddrs) -> None:
    page, addr = "quickstart.md", quick_cluster.namesrv_addr
    [output] = [each.code for each in blocks_of(f"docs/{page}") if each.language == "text"]
    assert run_program(page, __file__, {}, NAMESRV_ADDR=addr) == output
    printed = run_blocks(page, __file__, {"127.0.0.1:9876": addr})
    assert "#Broker Name" in printed
    assert printed.count("hello") >= 1


@pytest.mark.parametrize("settings", [ProducerSettings, ConsumerSettings, LitePullSettings])
def test_every_setting_is_described(settings: type) -> None:
    described = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))
    assert {field.name for field in fields(settings)} <= described
