from tests.support.scheduling import CLIENTS, ORDER, SERIAL_GROUPS, scope_of, sort_key
from tests.support.source_tree import ROOT


def test_heavy_folders_share_their_group_and_files_stay_together() -> None:
    assert scope_of("tests/up/test_a.py::test_x") == scope_of("tests/up/test_b.py::test_y")
    assert scope_of("tests/browser/test_a.py::test_x") != scope_of("tests/up/test_b.py::test_y")
    assert scope_of("tests/spark/test_a.py::test_x") != scope_of("tests/compat/test_b.py::test_y")
    assert scope_of(f"{CLIENTS[0]}::test_x") == scope_of(f"{CLIENTS[-1]}::test_y")
    assert scope_of(f"{CLIENTS[0]}::test_x") != scope_of("tests/compat/test_b.py::test_y")
    assert scope_of("tests/unit/a.py::test_x[a::b]") == scope_of("tests/unit/a.py::TestY::test_z")
    assert scope_of("tests/unit/a.py::test_x") != scope_of("tests/unit/b.py::test_x")


def test_groups_run_first_and_their_folders_are_not_mixed() -> None:
    names = [f"{folder}test_a.py::test_x" for group in SERIAL_GROUPS for folder in group]
    mixed = ["tests/unit/a.py::test_x", *reversed(names), "tests/wire/b.py::test_x"]
    assert sorted(mixed, key=sort_key) == [*names, mixed[0], mixed[-1]]


def test_long_files_run_before_short_ones() -> None:
    names = ["tests/unit/a.py::test_x", "tests/crash/b.py::test_x", "tests/spark/c.py::test_x"]
    assert sorted(names, key=sort_key) == names[::-1]


def test_all_names_exist() -> None:
    assert all((ROOT / name).exists() for name in ORDER)
