"""A Java client with exactly the settings that `manage.py up --secure` writes for clients."""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from core_broker.client import Credentials
from tests.compat import installing
from tests.compat.conftest import COMMANDS, require
from tests.compat.foreign import ForeignClient
from tests.up.gantry import Gantry

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 300)

MESSAGES = 5


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home folder of a running Gantry."""
    home = tmp_path_factory.mktemp("secured-start") / "home"
    with Gantry(home, "--secure", "--no-worker") as gantry:
        gantry.until_ready()
        yield home


@pytest.mark.parametrize("kind", ["java", "java5"])
def test_the_written_settings_connect(kind: str, home: Path, tmp_path: Path) -> None:
    require(kind)
    with ExitStack() as stack:
        guide = (home / "conf" / "clients.txt").read_text()
        options = re.search(r"JAVA_TOOL_OPTIONS=(.+)", guide)
        namesrv = re.search(r"name server +(\S+)", guide)
        keys = re.search(r"keys +(\S+)", guide)
        assert options, guide
        assert namesrv, guide
        assert keys, guide
        (value,) = shlex.split(options[1])
        credentials = Credentials.from_file(Path(keys[1]))
        assert credentials is not None

        def client(name: str) -> ForeignClient:
            folder = tmp_path / name
            folder.mkdir()
            environment = {**os.environ, "HOME": str(folder), "JAVA_TOOL_OPTIONS": value}
            started = ForeignClient(COMMANDS[kind](environment), environment, folder / "log")
            stack.callback(started.kill)
            return started

        common = {
            "namesrv": namesrv[1],
            "account": credentials.access_key,
            "secret": credentials.secret_key,
        }
        producer, consumer = client("producer"), client("consumer")
        producer.command("produce", group=f"PG-{kind}", **common)
        producer.wait_for("ready")
        topic = f"SecuredStart-{kind}"
        bodies = {f"message {number}" for number in range(MESSAGES)}
        producer.send(topic, [{"body": body} for body in sorted(bodies)])
        consumer.command("consume", group=f"CG-{kind}", topic=topic, expression="*", **common)
        consumer.wait_for("ready")
        consumer.wait_until(
            lambda: bodies <= {each["body"] for each in consumer.messages}, "all bodies", 60
        )
