"""Readiness probes of programs on this machine."""

import asyncio

from console.launcher.service import Probe

ANSWER_TIMEOUT_S = 5.0
ANSWER_BYTES_MAX = 4096


def http_ready(host: str, port: int, path: str = "/readyz") -> Probe:
    """Return a probe that is true when the path answers 200."""
    request = f"GET {path} HTTP/1.1\r\nHost: {bracketed(host)}:{port}\r\nConnection: close\r\n\r\n"

    async def ask() -> bool:
        answer = await exchange(host, port, request.encode())
        status_line = answer.split(b"\r\n", 1)[0].split(b" ")
        return len(status_line) > 1 and status_line[1] == b"200"

    return ask


def redis_ready(port: int, password: str) -> Probe:
    """Return a probe that is true when Redis or Valkey answers PING; PING fails during loading."""

    async def ask() -> bool:
        request = f"AUTH {password}\r\nPING\r\nQUIT\r\n"
        return b"+PONG" in await exchange("127.0.0.1", port, request.encode())

    return ask


async def exchange(host: str, port: int, request: bytes) -> bytes:
    """Send one request and return the response until the peer closes; empty on failure."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(request)
                return await read_answer(reader)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return b""


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    answer = b""
    while len(answer) < ANSWER_BYTES_MAX and (piece := await reader.read(ANSWER_BYTES_MAX)):
        answer += piece
    return answer


def bracketed(host: str) -> str:
    """Return an address as written before a port: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host
