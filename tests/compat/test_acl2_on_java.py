"""The matrix of ACL 2.0 at a broker of RocketMQ 5.3.3 and at Gantry's."""

from pathlib import Path
from typing import Any

import pytest

from core_broker.auth.acl2.demands import Mode
from core_broker.auth.contracts import STORED_ACTIONS
from tests.compat import installing
from tests.compat.record_acl2 import SETTINGS, create_users, decisions, decisions_of_java
from tests.support.acl2_matrix import ALLOWED, NO_HANDLER, decisions_of_rules, recorded
from tests.support.cluster import Cluster

#: Codes of the matrix without a handler in Gantry: the answer is the same for every sender.
MISSING = {
    *(60, 61, 353, 354, 355, 370, 401, 513, 905, 2001, 2002, 2003, 2004),
    *(4711, *range(200_050, 200_056), 200_151),
}

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)


def test_java_still_decides_as_recorded(tmp_path: Path) -> None:
    try:
        installing.java_broker_classpath(installing.JAVA5_VERSION)
    except installing.CannotInstall as reason:
        pytest.skip(f"Java broker: {reason}")
    assert {(title, name): out for title, name, out in decisions_of_java(tmp_path)} == recorded()


@pytest.mark.parametrize("mode", Mode)
def test_a_gantry_broker_decides_as_its_rules(mode: Mode, tmp_path: Path) -> None:
    """Through sockets, fast paths and slow paths; the rules are compared with the recording."""
    settings: dict[str, Any] = {"authorization_mode": mode, "max_access_failures": 0}
    with Cluster(tmp_path, **SETTINGS, **settings) as cluster:
        port = int(cluster.broker_addr.rpartition(":")[2])
        create_users(port)
        expected = decisions_of_rules(mode)
        for _ in range(2):  # the second time, fast paths remember what was admitted
            found = {(title, name): out for title, name, out in decisions(port)}
            handled = {title for (title, _), letter in found.items() if letter != NO_HANDLER}
            assert {int(title.split()[0]) for title, _ in found if title not in handled} == MISSING
            for key, letter in found.items():
                is_stored = int(key[0].split()[0]) in STORED_ACTIONS
                if is_stored and expected[key] == ALLOWED:
                    continue  # the topic of the stored message decides
                if key[0] in handled:
                    assert letter == expected[key], key
