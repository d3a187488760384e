"""The supervisor with small real programs: order, readiness, deaths, restarts, the end."""

import asyncio
import re
from pathlib import Path

import pytest

from console.launcher import supervisor
from console.launcher.errors import StartError
from console.launcher.probes import http_ready
from console.launcher.service import EVERYTHING, Service
from console.launcher.supervisor import RestartPolicy
from tests.unit.launcher.programs import (
    DEADLINE_S,
    SLEEPER,
    STUBBORN,
    Run,
    eventually,
    is_alive,
    script,
)

UP = re.compile("^up$")

HTTP_SERVER = """
import http.server
class Answer(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Answer.asked += 1
        self.send_response(200 if Answer.asked > 3 else 503)
        self.end_headers()
    def log_message(self, *arguments): pass
http.server.HTTPServer(("127.0.0.1", {port}), Answer).serve_forever()
"""


def sleeper(name: str = "sleeper", **more: object) -> Service:
    settings = {"command": script(SLEEPER), "ready_line": UP} | more
    return Service(name=name, **settings)  # type: ignore[arg-type]


def pid_noter(path: Path) -> str:
    return f"import os; open({str(path)!r}, 'a').write(f'{{os.getpid()}} ')\n" + SLEEPER


async def test_programs_start_after_those_they_need_and_stop_before_them(tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def noting(name: str) -> tuple[str, ...]:
        note = f"open({str(journal)!r}, 'a').write"
        return script(
            f"import signal, sys\n"
            f"def end(*_):\n    {note}('-{name} ')\n    sys.exit(0)\n"
            f"signal.signal(signal.SIGTERM, end)\n"
            f"{note}('+{name} ')\nprint('up', flush=True)\nwhile True: signal.pause()"
        )

    run = Run(
        tmp_path,
        sleeper("broker", command=noting("broker"), after=("namesrv",), stop_rank=1),
        sleeper("namesrv", command=noting("namesrv"), stop_rank=2),
    )
    assert await run.until_ready() == {"namesrv", "broker"}
    await run.stop()
    assert journal.read_text() == "+namesrv +broker -broker -namesrv "


async def test_each_program_is_reported_with_its_start_time(tmp_path: Path) -> None:
    once = Service(name="setup", command=script("print('tables')"), once=True, needed=True)
    run = Run(tmp_path, once, sleeper("console", after=("setup",)))
    await run.until_ready()
    times = [re.sub(r"[0-9.]+ s$", "… s", line) for line in run.said if line.startswith("[")]
    assert times == ["[setup] done after … s", "[console] ready after … s"]
    await run.stop()


async def test_ready_means_that_the_http_probe_answers_200(tmp_path: Path, free_port: int) -> None:
    server = Service(
        name="server",
        command=script(HTTP_SERVER.format(port=free_port)),
        probe=http_ready("127.0.0.1", free_port),
    )
    run = Run(tmp_path, server)
    assert await run.until_ready() == {"server"}
    await run.stop()


async def test_a_needed_program_that_dies_at_start_ends_everything(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    run = Run(
        tmp_path,
        sleeper("other", command=script(pid_noter(pids))),
        Service(
            name="broker",
            command=script("print('port 10911 is taken'); raise SystemExit(3)"),
            ready_line=UP,
            after=("other",),
            needed=True,
            hint="Use --broker-port.",
        ),
        sleeper("demo", after=("broker",), needed=True),
    )
    with pytest.raises(StartError) as caught:
        await asyncio.wait_for(run.task, DEADLINE_S)
    message = str(caught.value)
    assert "[broker] ended with code 3." in message
    assert "port 10911 is taken" in message
    assert message.endswith("Use --broker-port.")
    assert run.up is None
    assert not is_alive(int(pids.read_text()))


async def test_a_needed_program_that_never_gets_ready_ends_everything(tmp_path: Path) -> None:
    run = Run(
        tmp_path,
        sleeper("mute", ready_line=re.compile("never"), needed=True, ready_timeout_s=0.3),
    )
    with pytest.raises(StartError, match=r"did not become ready within 0\.3 s"):
        await asyncio.wait_for(run.task, DEADLINE_S)


async def test_a_program_that_cannot_be_executed_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path, Service(name="broker", command=("/no/such/program",), needed=True))
    with pytest.raises(StartError, match=r"No such file or directory \(/no/such/program\)"):
        await asyncio.wait_for(run.task, DEADLINE_S)


async def test_the_rest_runs_without_a_program_that_is_not_needed(tmp_path: Path) -> None:
    run = Run(
        tmp_path,
        sleeper("console"),
        Service(
            name="valkey",
            command=script("print('no memory'); raise SystemExit(1)"),
            ready_line=UP,
            when_off="Jobs are off.",
        ),
        sleeper("worker", after=("valkey",), when_off="No jobs."),
    )
    assert await run.until_ready() == {"console"}
    await eventually(lambda: "[valkey] off. Jobs are off." in run.text, "valkey given up")
    assert "no memory" in run.text
    assert run.text.count("starting it again in") == 2
    assert "worker is not started, for valkey is off." in run.text
    await run.stop()


async def test_a_program_that_dies_later_is_reported_and_started_again(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    run = Run(tmp_path, sleeper("worker", command=script(pid_noter(pids)), needed=True))
    await run.until_ready()
    first = int(pids.read_text())
    run.supervisor._children["worker"].kill()
    await eventually(lambda: len(pids.read_text().split()) == 2, "second process")
    assert "[worker] was ended by SIGKILL." in run.text
    await run.stop()
    assert not is_alive(first)
    assert not any(is_alive(int(pid)) for pid in pids.read_text().split())


async def test_kills_on_request_are_no_crashes(tmp_path: Path) -> None:
    """More kills than restarts after crashes are allowed; one at a time."""
    pids = tmp_path / "pids"
    command = script(pid_noter(pids))
    policy = RestartPolicy(restarts_max=1, delay_first_s=60, delay_killed_s=0.01)
    run = Run(tmp_path, sleeper("broker", command=command, needed=True), policy=policy)
    await run.until_ready()
    assert not run.supervisor.kill("nobody")
    for count in range(2, 6):
        await eventually(lambda: run.supervisor.kill("broker"), "the program runs")
        assert not run.supervisor.kill("broker"), "the same kill"
        await eventually(lambda: len(pids.read_text().split()) >= count, "the next process")  # noqa: B023
    await run.stop()
    assert not run.supervisor.kill("broker")
    assert not any(is_alive(int(pid)) for pid in pids.read_text().split())


async def test_a_needed_program_that_keeps_dying_ends_everything(tmp_path: Path) -> None:
    dying = script("print('up', flush=True); raise SystemExit(7)")
    run = Run(tmp_path, Service(name="broker", command=dying, ready_line=UP, needed=True))
    with pytest.raises(StartError, match="ended with code 7"):
        await asyncio.wait_for(run.task, DEADLINE_S)
    assert "starting it again" in run.text or run.up is None


async def test_deaths_long_ago_are_forgotten(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    ends_soon = script(pid_noter(pids).replace("signal.pause()", "pass"))
    forgetful = RestartPolicy(restarts_max=1, delay_first_s=0, steady_after_s=0)
    run = Run(tmp_path, sleeper(command=ends_soon), policy=forgetful)
    await run.until_ready()
    await eventually(lambda: len(pids.read_text().split()) > 3, "more starts than restarts_max")
    await run.stop()


async def test_a_stubborn_program_is_killed_after_its_grace(tmp_path: Path) -> None:
    run = Run(tmp_path, sleeper("stubborn", command=script(STUBBORN), stop_grace_s=0.2))
    await run.until_ready()
    await run.stop()
    assert "[stubborn] did not stop within 0.2 s and was killed." in run.text


async def test_a_second_request_kills_at_once(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    source = STUBBORN.replace(
        "print", f"import os; open({str(pids)!r}, 'w').write(str(os.getpid()));print"
    )
    run = Run(tmp_path, sleeper("stubborn", command=script(source), stop_grace_s=600))
    await run.until_ready()
    run.supervisor.request_stop()
    await run.stop()
    assert not is_alive(int(pids.read_text()))


async def test_what_a_program_left_behind_is_killed_with_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    source = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-S', '-c', {STUBBORN!r}])\n"
        f"open({str(pids)!r}, 'w').write(str(child.pid))\n" + SLEEPER
    )
    run = Run(tmp_path, sleeper("parent", command=script(source)))
    await run.until_ready()
    grandchild = int(pids.read_text())
    assert is_alive(grandchild)
    await run.stop()
    await eventually(lambda: not is_alive(grandchild), "grandchild gone")


async def test_a_step_runs_once_and_its_output_stays_off_the_disk(tmp_path: Path) -> None:
    setup = Service(
        name="setup",
        command=script("print('password: s3cret')"),
        once=True,
        needed=True,
        important=EVERYTHING,
        private_output=True,
    )
    run = Run(tmp_path, setup, sleeper("console", after=("setup",)))
    assert await run.until_ready() == {"setup", "console"}
    assert "[setup] password: s3cret" in run.said
    await run.stop()
    assert not any("s3cret" in log.read_text() for log in tmp_path.glob("*.log*"))


async def test_a_failed_step_ends_everything_without_repeating_its_secrets(tmp_path: Path) -> None:
    failing = script("print('password: s3cret'); raise SystemExit(1)")
    setup = Service(name="setup", command=failing, once=True, needed=True, private_output=True)
    run = Run(tmp_path, setup, sleeper("console", after=("setup",)))
    with pytest.raises(StartError, match="ended with code 1") as caught:
        await asyncio.wait_for(run.task, DEADLINE_S)
    assert "s3cret" not in str(caught.value)


async def test_a_stop_during_the_start_leaves_nobody(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    never_ready = sleeper(command=script(pid_noter(pids)), ready_line=re.compile("never"))
    run = Run(tmp_path, never_ready)
    await eventually(lambda: pids.exists() and pids.read_text() != "", "a process")
    await run.stop()
    assert run.up is None
    assert not is_alive(int(pids.read_text()))


async def test_important_lines_are_shown_and_all_are_logged(tmp_path: Path) -> None:
    source = "print('quiet'); print('2026 ERROR disk full', flush=True)\n" + SLEEPER
    run = Run(tmp_path, sleeper("broker", command=script(source)))
    await run.until_ready()
    await run.stop()
    assert "[broker] 2026 ERROR disk full" in run.said
    assert "quiet" not in run.text
    assert (tmp_path / "broker.log").read_text() == "quiet\n2026 ERROR disk full\nup\n"


async def test_a_long_start_says_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "WAITING_REPORT_INTERVAL_S", 0.05)
    slow = script("print('checking the log', flush=True)\n" + SLEEPER.replace("up", "never"))
    run = Run(tmp_path, sleeper("broker", command=slow))
    await eventually(lambda: "Waiting for broker, which says: " in run.text, "a word of patience")
    await run.stop()


async def test_a_fault_of_our_own_stops_everything_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"

    def broken(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(supervisor, "describe_end", broken)
    dying = script("raise SystemExit(1)")
    run = Run(
        tmp_path,
        sleeper("namesrv", command=script(pid_noter(pids))),
        Service(name="worker", command=dying, ready_line=UP, after=("namesrv",)),
    )
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(run.task, DEADLINE_S)
    assert not is_alive(int(pids.read_text()))
