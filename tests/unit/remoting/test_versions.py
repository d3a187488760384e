"""Names of version numbers, compared with the numbers of RocketMQ's releases."""

import pytest

from core_broker.remoting.versions import VERSION_NAMES, version_name


@pytest.mark.parametrize(
    ("ordinal", "name"),
    [
        (0, "V3_0_0_SNAPSHOT"),
        (15, "V3_0_0_FINAL"),
        (36, "V3_0_11_SNAPSHOT"),
        (63, "V3_1_8"),
        (121, "V3_4_9"),
        (127, "V3_5_3"),
        (213, "V4_0_0"),
        (273, "V4_3_0"),
        (317, "V4_5_2"),
        (409, "V4_9_8"),
        (413, "V5_0_0"),
        (479, "V5_3_3"),
        (612, "HIGHER_VERSION"),
    ],
)
def test_known_numbers(ordinal: int, name: str) -> None:
    assert version_name(ordinal) == name


@pytest.mark.parametrize("ordinal", [-1, 613, 2**31 - 1])
def test_numbers_of_no_version(ordinal: int) -> None:
    assert version_name(ordinal) == "HIGHER_VERSION"


def test_no_name_is_given_twice() -> None:
    assert len(set(VERSION_NAMES)) == len(VERSION_NAMES) == 613
