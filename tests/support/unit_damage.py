"""Damage to one unit of a consume queue."""

from collections.abc import Callable, Mapping

from core_broker.store.unit_layout import UNIT

#: Changes the bytes of a unit.
Change = Callable[[bytes], bytes]


def _with(
    place: Callable[[int], int] = lambda place: place,
    size: Callable[[int], int] = lambda size: size,
    code: Callable[[int], int] = lambda code: code,
) -> Change:
    def change(unit: bytes) -> bytes:
        old_place, old_size, old_code = UNIT.unpack(unit)
        return UNIT.pack(place(old_place), size(old_size), code(old_code))

    return change


def _flipped(bit: int) -> Callable[[int], int]:
    def flip(code: int) -> int:
        (flipped,) = UNIT.unpack(
            (int.from_bytes(UNIT.pack(0, 0, code), "big") ^ 1 << bit).to_bytes(UNIT.size, "big")
        )[2:]
        return int(flipped)

    return flip


#: Damage to physical offset or size.
PLACE_CASES: Mapping[str, Change] = {
    "beyond the log": _with(place=lambda place: place + 2**40),
    "negative offset": _with(place=lambda place: place - 2**63),
    "middle of a record": _with(place=lambda place: place + 64),
    "start of the log": _with(place=lambda place: 0 if place else 2**32),
    "size 0": _with(size=lambda size: 0),
    "negative size": _with(size=lambda size: size - 2**31),
    "size too large": _with(size=lambda size: size + 2**24),
    "size too small": _with(size=lambda size: size ^ 2),
}
#: Damage to the tags code: one flipped bit.
CODE_CASES: Mapping[str, Change] = {
    f"tags code, bit {bit}": _with(code=_flipped(bit)) for bit in (0, 13, 40, 63)
}
