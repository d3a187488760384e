"""Name server addresses from a web server: ``http://host:port/path`` answers with a list.

Compatible with RocketMQ's TopAddressing (fetchNamesrvAddr).
"""

import asyncio
from typing import Final
from urllib.parse import SplitResult, urlsplit

from core_broker.errors import ClientError, ConnectFailed

LOOKUP_INTERVAL_S: Final = 120.0
LOOKUP_TIMEOUT_S: Final = 3.0
ANSWER_BYTES_MAX: Final = 64 * 1024

_SCHEMES: Final = ("http://", "https://")


def lookup_url(addrs: str) -> SplitResult | None:
    """The URL of the web server with the address list. None when the text is a list of name
    servers, also in the form ``http://host:port`` of hosted clusters."""
    text = addrs.strip()
    if not text.startswith(_SCHEMES):
        return None
    url = urlsplit(text)
    return url if url.path.strip("/") else None


def without_scheme(addr: str) -> str:
    """``http://host:port`` as host:port."""
    for scheme in _SCHEMES:
        if addr.startswith(scheme):
            return addr.removeprefix(scheme).rstrip("/")
    return addr


async def look_up(url: SplitResult) -> str:
    """Fetch the address list; raises ConnectFailed when the web server is unreachable or answers
    with a status other than 200."""
    return await asyncio.to_thread(_get, url)


def _get(url: SplitResult) -> str:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    if url.hostname is None:
        raise ClientError(f"The name server address {url.geturl()!r} names no host.")
    connection = kind(url.hostname, url.port, timeout=LOOKUP_TIMEOUT_S)
    try:
        target = f"{url.path}?{url.query}" if url.query else url.path
        connection.request("GET", target)
        with connection.getresponse() as answer:
            body = answer.read(ANSWER_BYTES_MAX)
    except (OSError, HTTPException) as error:
        raise ConnectFailed(url.netloc, str(error) or type(error).__name__) from None
    finally:
        connection.close()
    if answer.status != 200:
        raise ConnectFailed(url.netloc, f"the address list was answered with {answer.status}")
    return body.decode("utf-8", "replace").strip()
