from tests.support.scheduling import SERIAL_GROUPS, scope_of, sort_key


def test_heavy_folders_share_their_group_and_files_stay_together() -> None:
    assert scope_of("tests/spark/test_a.py::test_x") == scope_of("tests/compat/test_b.py::test_y")
    assert scope_of("tests/spark/test_a.py::test_x") != scope_of("tests/up/test_up.py::test_y")
    assert scope_of("tests/unit/a.py::test_x[a::b]") == scope_of("tests/unit/a.py::TestY::test_z")
    assert scope_of("tests/unit/a.py::test_x") != scope_of("tests/unit/b.py::test_x")


def test_groups_run_first_and_their_folders_are_not_mixed() -> None:
    names = [f"{folder}test_a.py::test_x" for group in SERIAL_GROUPS for folder in group]
    mixed = ["tests/unit/a.py::test_x", *reversed(names), "tests/wire/b.py::test_x"]
    assert sorted(mixed, key=sort_key) == [*names, mixed[0], mixed[-1]]
