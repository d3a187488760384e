"""Installation of the foreign clients into ./var/compat, once.

Each function returns the program, folder or class path that starts a client, or raises
CannotInstall with the reason of the skipped tests. A lock keeps parallel test workers from
installing a client twice. An installation is complete when its folder has the marker file.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "var" / "compat"
CLIENTS = Path(__file__).resolve().parent / "clients"

CPP_PACKAGE = "rocketmq==0.4.4"
NODE_PACKAGE = "ali-ons@3.12.0"
JAVA_VERSION = "4.9.8"
JAVA5_VERSION = "5.3.3"
GO_MODULE = "github.com/apache/rocketmq-client-go/v2"
GO_VERSION = "v2.1.2"
RUST_CRATE = "rocketmq-client-rust"
RUST_VERSION = "1.0.0"
RUST_PROGRAMS = ("rocketmq-namesrv", "rocketmq-broker")
INSTALL_SECONDS_MAX = 300

#: The newest broker of each major version on Maven Central, which has no broker of 4.9.8.
JAVA_BROKER_VERSIONS = ("4.9.7", "5.3.3")
#: Timeout of a Go build, seconds: the first one fetches modules and compiles the standard library.
GO_SECONDS_MAX = 560
#: Timeout of a Rust build, seconds: the first build compiles 300 crates, 2.5 minutes on two cores.
RUST_SECONDS_MAX = 900
#: Timeout of the release build of the Rust name server and broker, seconds: 500 crates.
RUST_BROKER_SECONDS_MAX = 3_600
#: Timeout of a Maven run, seconds: the first run fetches some hundred files.
MAVEN_SECONDS_MAX = 560

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>gantry</groupId><artifactId>compat</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.rocketmq</groupId>
    <artifactId>{artifact}</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""


class CannotInstall(Exception):
    """A client cannot be installed on this machine; the text has the reason."""


@cache
def cpp_python() -> Path:
    """Return the interpreter of a virtual environment with the C++ client."""

    def install(folder: Path) -> None:
        run([sys.executable, "-m", "venv", str(folder)])
        run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", CPP_PACKAGE])

    python = installed("cpp", CPP_PACKAGE, install) / "bin" / "python"
    run([str(python), "-c", "import rocketmq.client"])
    return python


@cache
def node_modules() -> Path:
    """Return the folder of Node modules with the Node client."""

    def install(folder: Path) -> None:
        need("npm")
        (folder / "package.json").write_text('{"private":true}')
        run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", NODE_PACKAGE], folder)

    need("node")
    return installed("node", NODE_PACKAGE, install) / "node_modules"


@cache
def java_classpath(version: str = JAVA_VERSION) -> str:
    """Return the class path of a Java client, its tools, and our driver compiled for the client."""

    def compile_driver(folder: Path) -> None:
        need("javac")
        run(["javac", "-nowarn", "-cp", jars, "-d", str(folder), *map(str, sources)])

    need("java")
    jars = _jars(f"java-{version}", "rocketmq-tools", version)
    sources = sorted(CLIENTS.glob("*.java"))
    text = "".join(source.read_text() for source in sources)
    classes = installed(f"java-driver-{version}", text, compile_driver)
    return os.pathsep.join((str(classes), jars))


@cache
def go_client() -> Path:
    """Return the program that drives the Go client; `go.sum` pins its modules."""
    parts = [CLIENTS / "go" / name for name in ("go.mod", "go.sum", "main.go", "producing.go")]

    def build(folder: Path) -> None:
        for part in parts:
            shutil.copy(part, folder)
        run(["go", "build", "-o", "client", "."], folder, GO_SECONDS_MAX)

    need("go")
    return installed("go", "".join(part.read_text() for part in parts), build) / "client"


@cache
def rust_client() -> Path:
    """Return the program that drives the Rust client, with the crates of the client's Cargo.lock.

    The compiled crates stay in a folder beside the program, so that a changed driver builds fast.
    """
    source = CLIENTS / "rust"
    parts = [source / "Cargo.toml", *sorted(source.glob("src/*.rs"))]

    def build(folder: Path) -> None:
        (folder / "src").mkdir()
        for part in parts:
            shutil.copy(part, folder / part.relative_to(source))
        metadata = run(["cargo", "metadata", "--quiet", "--format-version=1"], folder)
        (crate,) = (each for each in json.loads(metadata)["packages"] if each["name"] == RUST_CRATE)
        shutil.copy(Path(crate["manifest_path"]).with_name("Cargo.lock"), folder)
        target = HOME / "rust-target"
        command = ["cargo", "build", "--quiet", "--target-dir", str(target)]
        run(command, folder, RUST_SECONDS_MAX)
        shutil.copy(target / "debug" / "gantry-compat", folder / "client")

    need("cargo")
    text = "".join(part.read_text() for part in parts)
    return installed("rust", text, build) / "client"


@cache
def rust_brokers() -> Path:
    """Return the folder with the Rust name server and broker below bin; needs Rust 1.95."""

    def build(folder: Path) -> None:
        target = HOME / "rust-release"
        options = ["--locked", "--quiet", "--root", str(folder), "--target-dir", str(target)]
        command = ["cargo", "install", *options, "--version", RUST_VERSION, *RUST_PROGRAMS]
        run(command, folder, RUST_BROKER_SECONDS_MAX)

    need("cargo")
    return installed("rust-brokers", RUST_VERSION, build)


def java_broker_classpath(version: str) -> str:
    """Return the class path of a Java broker."""
    return java_program_classpath("broker", version)


@cache
def java_program_classpath(program: str, version: str) -> str:
    """Return the class path of one of RocketMQ's programs: broker, namesrv or example."""
    need("java")
    return _jars(f"java-{program}-{version}", f"rocketmq-{program}", version)


def _jars(name: str, artifact: str, version: str) -> str:
    """Return the class path of an artifact of RocketMQ with its dependencies."""
    pom = POM.format(artifact=artifact, version=version)

    def install(folder: Path) -> None:
        need("mvn")
        (folder / "pom.xml").write_text(pom)
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
        run(command, folder, MAVEN_SECONDS_MAX)

    return str(installed(name, version + pom, install) / "lib" / "*")


def installed(name: str, version: str, install: Callable[[Path], None]) -> Path:
    """Return the client's folder, after an installation unless the folder has the version."""
    folder = HOME / name
    mark = folder / ".installed"
    stamp = hashlib.sha256(version.encode()).hexdigest()
    with locked(name):
        if mark.is_file() and mark.read_text() == stamp:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install(folder)
        mark.write_text(stamp)
    return folder


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of one client among all test processes."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def need(program: str) -> None:
    """Raise CannotInstall unless the program is on the path."""
    if shutil.which(program) is None:
        raise CannotInstall(f"{program} is not installed")


def run(
    command: list[str], folder: Path | None = None, seconds: float = INSTALL_SECONDS_MAX
) -> str:
    """Run one step of an installation, return its output; CannotInstall quotes the last line."""
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"{Path(command[0]).name} took over {seconds:.0f} s") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[-1] if lines else f"exit code {done.returncode}"
        raise CannotInstall(f"{Path(command[0]).name} failed: {reason[:200]}")
    return done.stdout
