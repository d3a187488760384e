"""The wheel: complete, installed into an empty environment, and used without a compiler."""

import os
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests.support.cluster import ROOT, Cluster
from tests.up.gantry import NO_PROXY, Gantry
from tests.up.wheels import build_wheel, install, unpack
from tools.release_check import readme_program

PACKAGES = ("console", "core_broker", "gantry", "namesrv", "spark_jobs", "trace")
CONTENTS = (".py", ".html", ".mo")
PROGRAMS = ("gantry", "mqadmin", "mqbroker", "mqcontroller", "mqnamesrv", "mqstore")
TIMEOUT_S = 240
NEWEST = "3.13"
BUILD_TIMEOUT_S = 600

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(wheel, tmp_path_factory.mktemp("installed") / "environment")


def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    wanted = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix in CONTENTS
    }
    wanted |= {
        f"console/files/{path.relative_to(ROOT).as_posix()}"
        for path in (ROOT / "static").rglob("*")
        if path.is_file()
    }
    with zipfile.ZipFile(wheel) as archive:
        assert wanted - set(archive.namelist()) == set()


def test_the_wheel_has_the_compiled_kernel(wheel: Path) -> None:
    suffix = EXTENSION_SUFFIXES[0]
    compiled = {path.name for path in (ROOT / "core_broker" / "kernel").glob(f"*{suffix}")}
    if not compiled:
        pytest.skip("the kernel is not compiled here: no C compiler")
    with zipfile.ZipFile(wheel) as archive:
        assert compiled <= {Path(name).name for name in archive.namelist()}


def test_the_readme_message_is_sent_in_an_empty_environment(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is that of README.md."""
    monkeypatch.setenv("PATH", str(programs))  # no compiler, and nothing else of this machine
    monkeypatch.delenv("PYTHONPATH", raising=False)
    python = str(programs / "python")
    with Cluster(tmp_path, root=tmp_path, python=python) as cluster:
        done = run(python, tmp_path, "-c", readme_program(cluster.namesrv_addr))
        assert done.returncode == 0, done.stderr
        done = run(programs / "mqadmin", tmp_path, "topicList", "-n", cluster.namesrv_addr)
        assert "orders" in done.stdout.split(), done.stderr
        assert kernel_of(python, tmp_path) == kernel_of(sys.executable, ROOT)


def test_modules_of_the_package_trace_stand_beside_that_of_the_standard_library(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    program = (
        "import trace, gantry, pickle\n"
        "from trace.hooks import TraceHook\n"
        "assert pickle.loads(pickle.dumps(TraceHook)) is TraceHook\n"
        "print(trace.Trace.__name__, trace.hooks.__file__)"
    )
    done = run(programs / "python", tmp_path, "-c", program)
    assert done.returncode == 0, done.stderr
    name, file = done.stdout.split()
    assert name == "Trace"
    assert Path(file).is_relative_to(programs.parent)
    done = run(programs / "mqadmin", tmp_path, "queryMsgTraceById", "-h")
    assert done.returncode == 0, done.stderr


def kernel_of(python: str, folder: Path) -> bool:
    """Return True when the interpreter finds a compiled kernel."""
    return run(python, folder, "-c", "import core_broker.kernel.sends").returncode == 0


def run(program: str | Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def test_all_programs_are_installed_and_the_console_is_explained(
    programs: Path, tmp_path: Path
) -> None:
    assert [name for name in PROGRAMS if not (programs / name).exists()] == []
    done = run(programs / "gantry", tmp_path, "up")
    assert done.returncode == 1
    assert "pip install 'gantry[console]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_gantry_up_starts_the_console_of_the_wheel(wheel: Path, tmp_path: Path) -> None:
    installed = unpack(wheel, tmp_path / "site-packages")
    with Gantry(tmp_path / "home", "--no-worker", installed=installed) as gantry:
        url = gantry.until_ready()
        page = NO_PROXY.open(f"{url}/accounts/login/", timeout=TIMEOUT_S).read().decode()
        style = NO_PROXY.open(f"{url}/static/gantry/frame.css", timeout=TIMEOUT_S)
        assert style.status == 200
        assert "/static/gantry/frame.css?v=" in page
        request = urllib.request.Request(
            f"{url}/accounts/login/", headers={"Accept-Language": "zh-hans"}
        )
        assert "登录" in NO_PROXY.open(request, timeout=TIMEOUT_S).read().decode()
        assert gantry.end() == 0, gantry.text


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("source")
    egg = ("egg_info", "--egg-base", str(folder))
    run_setup(ROOT, *egg, "sdist", "--dist-dir", str(folder), "--formats=zip")
    [archive] = folder.glob("gantry-*.zip")
    return next(unpack(archive, folder / "unpacked").iterdir())


def test_a_source_distribution_has_the_types_of_the_kernel(source: Path) -> None:
    types = {path.name for path in (ROOT / "core_broker" / "kernel").glob("*.pxd")}
    assert types == {path.name for path in (source / "core_broker" / "kernel").glob("*.pxd")}
    assert not list(source.rglob("*.so"))


@pytest.mark.parametrize("missing", ["compiler", "Cython"])
def test_the_source_builds_without(missing: str, source: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(build_without(missing, source, tmp_path)) as contents:
        names = contents.namelist()
    assert "console/files/static/gantry/frame.css" in names
    assert "console/files/docs/settings.md" in names
    assert not [name for name in names if name.endswith(".so")]


def test_the_readme_message_is_sent_with_the_newest_python(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the kernel, whose compilation for another Python takes minutes."""
    interpreter = newest_python()
    if interpreter is None:
        pytest.skip(f"no Python {NEWEST} on the PATH or in pyenv's folder")
    plain = build_without("Cython", source, tmp_path)
    programs = install(plain, tmp_path / "environment", str(interpreter))
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    python = str(programs / "python")
    assert NEWEST in run(python, tmp_path, "--version").stdout
    with Cluster(tmp_path, root=tmp_path, python=python) as cluster:
        done = run(python, tmp_path, "-c", readme_program(cluster.namesrv_addr))
        assert done.returncode == 0, done.stderr


def newest_python() -> Path | None:
    """Return the newest interpreter that is tested, from the PATH or pyenv's folder."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = [shutil.which(f"python{NEWEST}"), *map(str, pyenv.glob(f"{NEWEST}.*/bin/python"))]
    for each in filter(None, found):
        done = subprocess.run([each, "--version"], check=False, capture_output=True, text=True)
        if NEWEST in done.stdout:  # a shim of pyenv may have no interpreter
            return Path(each)
    return None


def build_without(missing: str, source: Path, tmp_path: Path) -> Path:
    """Build the source where Cython, or the compiler, is missing; return the wheel."""
    environ = {"PATH": "/usr/bin:/bin"}
    if missing == "Cython":
        blocked = tmp_path / "blocked" / "Cython"
        blocked.mkdir(parents=True)
        (blocked / "__init__.py").write_text("raise ImportError('no Cython here')\n")
        environ["PYTHONPATH"] = str(blocked.parent)
    else:
        environ["CC"] = "/nonexistent/cc"
        copy_translated_kernel(source)
    build = ("build", "--build-base", str(tmp_path / "build"))
    run_setup(source, *build, "bdist_wheel", "--dist-dir", str(tmp_path), environ=environ)
    [wheel] = tmp_path.glob("gantry-*.whl")
    return wheel


def copy_translated_kernel(source: Path) -> None:
    """Copy the C files of this tree, if any, with a new time: Cython takes 20 s to write them."""
    translated = ROOT / "build" / "kernel"
    if translated.exists():
        shutil.copytree(
            translated,
            source / "build" / "kernel",
            copy_function=shutil.copyfile,
            dirs_exist_ok=True,
        )


def run_setup(folder: Path, *arguments: str, environ: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", *arguments],
        cwd=folder,
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
