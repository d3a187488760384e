"""The demo's switch: kills the replicas of this demo for the console, and nothing else."""

import asyncio

import pytest

from console.launcher.demo_control import LINE_BYTES_MAX, LOOPBACK, DemoControl


async def ask(port: int, line: bytes) -> str:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        writer.write(line)
        writer.write_eof()
        return (await reader.read()).decode()
    except ConnectionError:
        return ""
    finally:
        writer.close()


async def test_only_the_token_kills_only_running_replicas_of_the_demo() -> None:
    running, killed = {"broker"}, []
    control = DemoControl({"10911": "broker", "10921": "replica-2"}, "127.0.0.1:9876")

    def kill(name: str) -> bool:
        killed.append(name)
        return name in running

    control.kill = kill
    await control.start()
    try:
        port, token, namesrv = control.text.split(" ")
        assert namesrv == "127.0.0.1:9876"
        answers = [
            (f"{token} kill 10911\n", "killed broker\n"),
            (f"{token} kill 10921\n", "refused replica-2 does not run\n"),
            (f"{token} kill 1\n", "refused no replica of this demo\n"),
            (f"{token} stop 10911\n", "refused no replica of this demo\n"),
            (f"{token}\n", "refused no replica of this demo\n"),
            ("wrong kill 10911\n", "refused wrong token\n"),
            ("", "refused wrong token\n"),
        ]
        for line, expected in answers:
            assert await ask(int(port), line.encode()) == expected, line
        assert await ask(int(port), b"\xff\x00 kill 10911\n") == "refused wrong token\n"
        assert await ask(int(port), b"x" * 4 * LINE_BYTES_MAX + b"\n") == ""
        assert killed == ["broker", "replica-2"]
    finally:
        control.close()
    with pytest.raises(OSError):  # noqa: PT011 - refused, of any kind
        await asyncio.open_connection(LOOPBACK, int(port))
