import os
import subprocess
from pathlib import Path

import pytest

from console.launcher.errors import EXIT_USAGE, StartError
from console.launcher.home import claimed_home


def test_a_new_home_has_its_folders_and_a_settings_file(tmp_path: Path) -> None:
    with claimed_home(tmp_path / "deep" / "home") as home:
        assert (home / "store").is_dir()
        assert "traceTopicEnable=true" in (home / "conf" / "broker.conf").read_text()


def test_an_edited_settings_file_is_kept(tmp_path: Path) -> None:
    with claimed_home(tmp_path) as home:
        (home / "conf" / "broker.conf").write_text("brokerName=mine\n")
    with claimed_home(tmp_path) as home:
        assert (home / "conf" / "broker.conf").read_text() == "brokerName=mine\n"


def test_a_second_claim_is_refused_and_names_the_first(tmp_path: Path) -> None:
    with (
        claimed_home(tmp_path),
        pytest.raises(StartError, match=f"process {os.getpid()}") as caught,
        claimed_home(tmp_path),
    ):
        pytest.fail("claimed twice")
    assert "--home" in str(caught.value)
    assert caught.value.exit_code == EXIT_USAGE


def test_the_claim_ends_with_its_holder(tmp_path: Path) -> None:
    with claimed_home(tmp_path):
        pass
    with claimed_home(tmp_path):
        pass


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StartError, match=r"cannot be used: Not a directory\. .*--home"),
        claimed_home(tmp_path / "file" / "home"),
    ):
        pytest.fail("claimed a file")


def test_only_the_user_can_read_the_home(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    with claimed_home(tmp_path / "home") as home:
        subprocess.run(["/bin/touch", home / "console.sqlite3"], check=True)
        assert not [it for it in (home, *home.rglob("*")) if it.stat().st_mode & 0o077]
    home.chmod(0o755)
    with claimed_home(home):
        assert home.stat().st_mode & 0o777 == 0o700


def test_a_folder_of_other_programs_stays_open(tmp_path: Path) -> None:
    (tmp_path / "of another program").touch()
    tmp_path.chmod(0o755)
    with claimed_home(tmp_path):
        assert tmp_path.stat().st_mode & 0o777 == 0o755
