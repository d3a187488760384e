from tests.support.scheduling import ROOMS, place_of, room_of


def test_heavy_folders_share_their_room_and_files_stay_together() -> None:
    assert room_of("tests/spark/test_a.py::test_x") == room_of("tests/compat/test_b.py::test_y")
    assert room_of("tests/spark/test_a.py::test_x") != room_of("tests/up/test_up.py::test_y")
    assert room_of("tests/unit/a.py::test_x[a::b]") == room_of("tests/unit/a.py::TestY::test_z")
    assert room_of("tests/unit/a.py::test_x") != room_of("tests/unit/b.py::test_x")


def test_rooms_come_first_and_their_folders_are_not_mixed() -> None:
    names = [f"{folder}test_a.py::test_x" for room in ROOMS for folder in room]
    mixed = ["tests/unit/a.py::test_x", *reversed(names), "tests/wire/b.py::test_x"]
    assert sorted(mixed, key=place_of) == [*names, mixed[0], mixed[-1]]
