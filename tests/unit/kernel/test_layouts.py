"""Format constants and limits of the kernel's sources equal the Python constants.

C code cannot import Python constants, so the kernel has copies. The test compares every name below
in every kernel module with a definition of the name. The test reads only sources
and needs no compiler.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from core_broker import limits
from core_broker.message import record_layout, sysflag
from core_broker.message.batch import BATCHED_BYTES_MIN, BATCHED_HEAD
from core_broker.message.topics import TOPIC_BYTES_MAX
from core_broker.remoting import frame_layout
from core_broker.store import index_items, index_layout, unit_layout

KERNEL = Path(limits.__file__).parent / "kernel"

EXPECTED = {
    "RECORD_HEAD": record_layout.HEAD.size,
    "RECORD_MIN": record_layout.RECORD_BYTES_MIN,
    "RECORD_MAGIC_V1": record_layout.RECORD_MAGIC_V1,
    "RECORD_MAGIC_V2": record_layout.RECORD_MAGIC_V2,
    "MAGIC_AT": record_layout.MAGIC_AT,
    "SYS_FLAG_AT": record_layout.SYS_FLAG_AT,
    "BODY_LENGTH_AT": record_layout.BODY_LENGTH_AT,
    "CRC_MASK": record_layout.CRC_MASK,
    "BORN_HOST_V6": sysflag.BORN_HOST_V6,
    "STORE_HOST_V6": sysflag.STORE_HOST_V6,
    "V6_EXTRA": record_layout.V6_EXTRA_BYTES,
    "UNIT_BYTES": unit_layout.UNIT_BYTES,
    "BLANK_SIZE": unit_layout.BLANK_SIZE,
    "ITEM_BYTES": index_layout.ITEM_LAYOUT.size,
    "SLOT_BYTES": index_layout.SLOT.size,
    "SLOTS_PER_BLOCK": index_items.SLOTS_PER_BLOCK,
    "ENTRY_NUMBERS": index_items.ENTRY_NUMBERS,
    "SECONDS_MAX": index_items.SECONDS_MAX,
    "BATCH_HEAD": BATCHED_HEAD.size,
    "BATCHED_MIN": BATCHED_BYTES_MIN,
    "BATCH_MESSAGES_MAX": limits.BATCH_MESSAGES_MAX,
    "PROPERTIES_MAX": limits.PROPERTIES_BYTES_MAX,
    "TOPIC_MAX": TOPIC_BYTES_MAX,
    "FRAME_HEAD": frame_layout.FRAME_HEAD_BYTES,
    "LENGTH_BYTES": frame_layout.LENGTH_BYTES,
    "FRAME_MAX": limits.FRAME_BYTES_MAX,
}

_DEFINE = re.compile(r"^ *#define GANTRY_(\w+) (0x[0-9A-Fa-f]+|\d+)u?$", re.MULTILINE)
_ENUM = re.compile(r"^    (\w+) = (\d+)$", re.MULTILINE)
_OPERATORS = {ast.LShift: int.__lshift__, ast.Mult: int.__mul__}


def constants() -> dict[str, dict[str, int]]:
    """Name of a constant → kernel file that defines it → value."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for path in KERNEL.glob("*.pxd"):
        text = path.read_text(encoding="utf-8")
        for name, value in _DEFINE.findall(text) + _ENUM.findall(text):
            found[name][path.name] = int(value, 0)
    for path in KERNEL.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                (target,) = node.targets
                value = number(node.value.args[-1]) if node.value.args else None
                if isinstance(target, ast.Name) and value is not None:
                    found[target.id][path.name] = value
    return found


def number(node: ast.expr) -> int | None:
    """The value of a literal, or of two literals with an operator between them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = number(node.left), number(node.right)
        if left is not None and right is not None:
            return _OPERATORS[type(node.op)](left, right)
    return None


@pytest.mark.parametrize("name", EXPECTED)
def test_the_kernel_has_the_same_number(name: str) -> None:
    found = constants()[name]
    assert found, f"no kernel module defines {name}: remove {name} from EXPECTED"
    assert set(found.values()) == {EXPECTED[name]}, found
