"""Names of the version numbers in the header field `version` of clients and servers.

A version number is an ordinal: each release takes two ordinals, first for the snapshot, then for
the release. The 3.x line has gaps, and every beta of the first release has a name. Compatible with
org.apache.rocketmq.common.MQVersion of 4.9.8.
"""

from collections.abc import Iterator

_OF_3_0_0 = (
    *("SNAPSHOT", "ALPHA1", "BETA1", "BETA2", "BETA3", "BETA4", "BETA5", "BETA6_SNAPSHOT"),
    *("BETA6", "BETA7_SNAPSHOT", "BETA7", "BETA8_SNAPSHOT", "BETA8", "BETA9_SNAPSHOT", "BETA9"),
    "FINAL",
)
#: (major, minor, first patch, last patch) in the order of their ordinals.
_LINES = (
    (3, 0, 1, 15),
    (3, 1, 0, 9),
    (3, 2, 0, 9),
    *((3, minor, 1, 9) for minor in range(3, 10)),
    *((4, minor, 0, 9) for minor in range(10)),
    *((5, minor, 0, 9) for minor in range(10)),
)


def _names() -> Iterator[str]:
    for state in _OF_3_0_0:
        yield f"V3_0_0_{state}"
    for major, minor, first, last in _LINES:
        for patch in range(first, last + 1):
            yield f"V{major}_{minor}_{patch}_SNAPSHOT"
            yield f"V{major}_{minor}_{patch}"
    yield "HIGHER_VERSION"


VERSION_NAMES = tuple(_names())
#: The first version of RocketMQ 5; requests with this or a later version come from 5.x clients.
VERSION_5 = VERSION_NAMES.index("V5_0_0_SNAPSHOT")


def version_name(ordinal: int) -> str:
    """``V4_9_8`` for 409; HIGHER_VERSION for a number above the known versions."""
    return VERSION_NAMES[ordinal] if 0 <= ordinal < len(VERSION_NAMES) else VERSION_NAMES[-1]
