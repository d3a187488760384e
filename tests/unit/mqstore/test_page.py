"""docs/mqstore.md: the commands work on a store folder."""

from pathlib import Path

from core_broker.message.ids import offset_msg_id
from tests.support.document_blocks import run_blocks
from tests.unit.mqstore.conftest import INDEX_SETTINGS


def test_the_commands_of_the_page_work(root: Path) -> None:
    slots, items = INDEX_SETTINGS.values()
    texts = {
        "DIR": f"{root} --max-hash-slot-num {slots} --max-index-num {items}",
        "--topic T": "--topic TopicTest",
        "ORDER-000001": "order-7",
        "--offset 5995": "--offset 0",
        "7F00000100002A9F000000000000176B": offset_msg_id("127.0.0.1", 10911, 0),
    }
    printed = run_blocks("mqstore.md", __file__, texts)
    assert "TopicTest" in printed
    assert "message 7" in printed
    assert list((root / "trash").glob("repair-*"))
