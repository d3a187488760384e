"""Java programs with little memory: brokers, name servers and controllers."""

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
from tests.support.processes import kill_program, stop_program

START_SECONDS_MAX = 150
POLL_SECONDS = 0.05

#: Settings of a store with small segments, several of which a test fills.
STORE = SMALL_STORE | {"mapped_file_size_commit_log": 1024 * 1024}
#: Settings that switch off the timer wheel, whose files have hundreds of megabytes, and let the
#: broker run on an almost full disk.
SETTINGS = {
    "brokerName": "broker-a",
    "brokerIP1": "127.0.0.1",
    "brokerIP2": "127.0.0.1",
    "timerWheelEnable": "false",
    "diskMaxUsedSpaceRatio": "95",
    "diskSpaceWarningLevelRatio": "99",
    "diskSpaceCleanForciblyRatio": "99",
}
#: JVM options for short runs: little memory, and only the C1 compiler, since C2 pays off later.
SHORT_LIFE = (
    *("-Xms256m", "-Xmx512m", "-XX:MaxDirectMemorySize=256m", "-XX:+UseSerialGC"),
    "-XX:TieredStopAtLevel=1",
)
#: Java system properties of the disk ratios, which RocketMQ 4 does not read from its settings.
DISK = (
    "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
    "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.99",
)
#: JVM options from RocketMQ's own start script: the store unmaps files through internal Java APIs.
OPENED = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
)
#: Log configuration: warnings go to standard output, which the error of a failed start quotes.
LOGGING = """<configuration>
  <appender name="C" class="{package}ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%level %logger{{0}} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="C"/></root>
</configuration>
"""
#: Log file name → package prefix. RocketMQ 5 has its own copy of logback with another file name.
LOGGING_FILES = {
    "logback.xml": "",
    "logback_broker.xml": "",
    "logback_namesrv.xml": "",
    "rmq.logback.xml": "org.apache.rocketmq.logging.",
}


class JavaProgram:
    """A RocketMQ program with its own home folder; a stopped program can be started again."""

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
        """Start the program and wait until it serves."""
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
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Stop the program with SIGTERM and wait for its end."""
        if self.process is not None:
            code = stop_program(self.process)
            self.process = None
            assert code != -signal.SIGKILL, f"{self.home.name} did not stop"

    def kill(self) -> None:
        """Stop the program with SIGKILL."""
        if self.process is not None:
            kill_program(self.process)
            self.process = None


class JavaBroker(JavaProgram):
    """A Java broker on a store folder."""

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


class JavaController(JavaProgram):
    """A controller of RocketMQ 5.3.3, one of a group with `ports`."""

    def __init__(self, folder: Path, number: int, ports: Sequence[int]) -> None:
        """Raise CannotInstall without an installation."""
        self.addr = f"127.0.0.1:{ports[number]}"
        peers = ";".join(f"n{each}-127.0.0.1:{port}" for each, port in enumerate(ports))
        values = {
            "controllerType": "DLedger",
            "controllerDLegerGroup": "group1",
            "controllerDLegerPeers": peers,
            "controllerDLegerSelfId": f"n{number}",
            "controllerStorePath": str(folder / "data"),
            "mappedFileSize": str(1024 * 1024),
            "scanNotActiveBrokerInterval": "1000",
            "scanInactiveMasterInterval": "1000",
        }
        main = "org.apache.rocketmq.controller.ControllerStartup"
        classpath = installing.java_program_classpath("controller", installing.JAVA5_VERSION)
        super().__init__(folder, main, classpath, values, ("-Xms128m", "-Xmx256m"))


def java_replica(
    folder: Path, namesrv_addr: str, controllers: Sequence[str], **settings: Any
) -> JavaBroker:
    """A broker of RocketMQ 5.3.3 under controllers that has not started."""
    return JavaBroker(
        installing.JAVA5_VERSION,
        folder,
        folder / "store",
        namesrv_addr,
        enable_controller_mode=True,
        controller_addr=";".join(controllers),
        store_path_epoch_file=folder / "store" / "epoch",
        store_path_broker_identity=folder / "store" / "identity",
        all_ack_in_sync_state_set=True,
        **settings,
    )


class JavaNameServer(JavaProgram):
    """A Java name server."""

    def __init__(self, version: str, folder: Path, *, jvm: Sequence[str] = SHORT_LIFE) -> None:
        port = free_broker_port()
        self.addr = f"127.0.0.1:{port}"
        main = "org.apache.rocketmq.namesrv.NamesrvStartup"
        classpath = installing.java_program_classpath("namesrv", version)
        values = {"listenPort": str(port)}
        super().__init__(folder / f"java-namesrv-{version}", main, classpath, values, jvm)
