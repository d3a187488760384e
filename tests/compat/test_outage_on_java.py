"""An outage of a Java broker: pages and API are the same as for a Gantry broker."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from console.gateway import gateway
from tests.api.outages import Own, check_failures_of_the_api, check_red_with_last_values
from tests.compat import installing
from tests.compat.test_client_on_java import java_cluster, registered
from tests.support.processes import running_children

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)


def kill_broker() -> None:
    """kill -9 the Java broker of this test."""
    for child in running_children(psutil.Process(), "BrokerStartup"):
        child.kill()


@pytest.fixture(params=installing.JAVA_BROKER_VERSIONS)
def own(
    request: pytest.FixtureRequest, tmp_path: Path, settings: Settings, db: None
) -> Iterator[Own]:
    user = User.objects.create_superuser("staff")
    with java_cluster(request.param, tmp_path) as addr:
        settings.CONSOLE_CLUSTERS = {"local": addr}
        found = Own(addr, asyncio.run(registered(addr)), kill_broker, user)
        try:
            yield found
        finally:
            found.traffic.close()
            gateway.close()


def test_a_dead_java_broker_is_shown_as_a_gantry_broker_is(own: Own) -> None:
    own.see_everything()
    own.kill_and_notice()
    check_red_with_last_values(own)
    check_failures_of_the_api(own)
