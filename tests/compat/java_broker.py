"""A Java broker on a store folder, in a process of its own, by default with little memory."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core_broker.config import java_key, property_text
from tests.compat import installing
from tests.support.cluster import READY, SMALL_STORE, free_broker_port

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30
LOOK_SECONDS = 0.05

#: Segments so small that a test fills several.
STORE = SMALL_STORE | {"mapped_file_size_commit_log": 1024 * 1024}
#: Without what a broker of a test does not need, above all files of hundreds of megabytes.
SETTINGS = {
    "brokerName": "broker-a",
    "brokerIP1": "127.0.0.1",
    "brokerIP2": "127.0.0.1",
    "timerWheelEnable": "false",
    "diskMaxUsedSpaceRatio": "95",
    "diskSpaceWarningLevelRatio": "99",
    "diskSpaceCleanForciblyRatio": "99",
}
#: Little memory, and the first compiler only: a short life does not earn back the second one.
SHORT_LIFE = (
    *("-Xms256m", "-Xmx512m", "-XX:MaxDirectMemorySize=256m", "-XX:+UseSerialGC"),
    "-XX:TieredStopAtLevel=1",
)
DISK = (
    "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
    "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.99",
)
#: The store unmaps files by ways that Java closed to programs; RocketMQ's own script opens them.
OPENED = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
)
#: Warnings go to the output, which a failure to start quotes.
LOGGING = """<configuration>
  <appender name="C" class="{package}ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%level %logger{{0}} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="C"/></root>
</configuration>
"""
#: RocketMQ 5 has its own copy of logback, which looks for another name.
LOGGING_FILES = {
    "logback.xml": "",
    "logback_broker.xml": "",
    "logback_namesrv.xml": "",
    "rmq.logback.xml": "org.apache.rocketmq.logging.",
}


class JavaProgram:
    """A program of RocketMQ with a home of its own; `start`, then `stop` or `kill`, repeatedly."""

    def __init__(
        self, home: Path, main: str, classpath: str, values: dict[str, str], jvm: Sequence[str]
    ) -> None:
        self.home = home
        self.process: subprocess.Popen[bytes] | None = None
        self._output = home / "output.log"
        conf = home / "conf"
        conf.mkdir(parents=True)
        for name, package in LOGGING_FILES.items():
            (conf / name).write_text(LOGGING.format(package=package))
        settings = home / "program.conf"
        settings.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        path = os.pathsep.join((str(conf), classpath))
        own = (*jvm, *OPENED, *DISK, f"-Duser.home={home}", "-cp", path)
        self._command = ["java", *own, main, "-c", str(settings)]

    def start(self) -> None:
        """Start it and wait until it serves."""
        environment = {**os.environ, "ROCKETMQ_HOME": str(self.home)}
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                self._command,
                cwd=self.home,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while READY not in (printed := self._output.read_text(errors="replace")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"{self.home.name} did not start:\n{printed[-4000:]}")
            time.sleep(LOOK_SECONDS)

    def stop(self) -> None:
        """Stop it in order."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(STOP_SECONDS_MAX)
            self.process = None

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class JavaBroker(JavaProgram):
    """One broker on a store folder."""

    def __init__(
        self,
        version: str,
        folder: Path,
        store: Path,
        namesrv_addr: str,
        *,
        jvm: Sequence[str] = SHORT_LIFE,
        **settings: Any,
    ) -> None:
        self.version = version
        self.port = free_broker_port()
        self.addr = f"127.0.0.1:{self.port}"
        own = STORE | settings
        values = {
            **SETTINGS,
            **{java_key(name): property_text(value) for name, value in own.items()},
            "namesrvAddr": namesrv_addr,
            "listenPort": str(self.port),
            "haListenPort": str(free_broker_port()),
            "storePathRootDir": str(store),
            "storePathCommitLog": str(store / "commitlog"),
        }
        main = "org.apache.rocketmq.broker.BrokerStartup"
        classpath = installing.java_broker_classpath(version)
        super().__init__(folder / f"java-{version}", main, classpath, values, jvm)
