"""Lists of the members of a group in settings: `n0-host:port;n1-host:port`, as in DLedger.

A member's id ends in a number of its own, which never changes.
"""

import re
from typing import NamedTuple

from core_broker.errors import SettingProblem
from core_broker.limits import PORT_MAX

#: Members of one group.
PEERS_MAX = 9

_PEER = re.compile(r"(?P<id>[A-Za-z_]*(?P<number>\d{1,4}))-(?P<host>[^\s;]+):(?P<port>\d{1,5})")


class PeerAddress(NamedTuple):
    """The id of a member in the settings, for example n0, and its address."""

    name: str
    host: str
    port: int


def parse_peers(key: str, text: str, problems: list[SettingProblem]) -> dict[int, PeerAddress]:
    """Return the members by the number in their ids; add what is wrong to `problems`."""
    found: dict[int, PeerAddress] = {}
    parts = [part.strip() for part in text.split(";") if part.strip()]
    for part in parts:
        match = _PEER.fullmatch(part)
        if match is None or not 0 < int(match["port"]) <= PORT_MAX:
            expected = "n0-host:port, several separated by ; with different numbers in their ids"
            problems.append(SettingProblem(key, expected, part))
            continue
        found[int(match["number"])] = PeerAddress(match["id"], match["host"], int(match["port"]))
    if not problems and (len(found) < len(parts) or len(found) > PEERS_MAX):
        expected = f"at most {PEERS_MAX} peers with different numbers in their ids"
        problems.append(SettingProblem(key, expected, text))
    return found
