"""Term, vote and commit index on the disk."""

from pathlib import Path

import pytest

from core_broker.config import BrokerConfig
from core_broker.dledger.peers import group_of
from core_broker.dledger.state_files import (
    TermAndVote,
    load_committed,
    load_term,
    save_committed,
    save_term,
)
from core_broker.errors import SettingsError, StoreCorrupt

PEERS = "n0-10.0.0.1:40911;n1-10.0.0.2:40911;n2-host-c:40911"


def test_term_and_vote_come_back(tmp_path: Path) -> None:
    path = tmp_path / "dledger-n0" / "currterm"
    assert load_term(path) == TermAndVote(0, None, is_new=True)
    for saved in (
        TermAndVote(7, "n2"),
        TermAndVote(8, None),
        TermAndVote(9, "n1", is_new=True),
    ):
        save_term(path, saved)
        assert load_term(path) == saved


def test_the_files_of_java_are_read(tmp_path: Path) -> None:
    path = tmp_path / "currterm"
    path.write_text("#Tue Nov 24 10:00:00 UTC 2026\nvoteLeader=n1\ncurrTerm=12\n")
    assert load_term(path) == TermAndVote(12, "n1")
    save_committed(tmp_path / "checkpoint", 41, 40)
    assert (tmp_path / "checkpoint").read_text() == "endIndex=41\ncommittedIndex=40\n"
    assert load_committed(tmp_path / "checkpoint") == 40
    assert load_committed(tmp_path / "missing") == -1


@pytest.mark.parametrize("content", ["", "voteLeader=n1\n", "currTerm=x\n"])
def test_a_damaged_term_ends_the_start(tmp_path: Path, content: str) -> None:
    path = tmp_path / "currterm"
    path.write_text(content)
    with pytest.raises(StoreCorrupt, match="second leader"):
        load_term(path)


def test_the_group_of_the_settings() -> None:
    group = group_of(BrokerConfig(broker_name="b", d_leger_peers=PEERS, d_leger_self_id="n2"))
    assert (group.name, group.number, group.address("n2")) == ("b", 2, "host-c:40911")
    assert group.preferred == ()
    settings = {"d_leger_peers": PEERS, "d_leger_self_id": "n0", "preferred_leader_id": "n2;n1"}
    assert group_of(BrokerConfig(**settings)).preferred == ("n2", "n1")


def test_a_preferred_member_that_does_not_exist_is_told(caplog: pytest.LogCaptureFixture) -> None:
    settings = {"d_leger_peers": PEERS, "d_leger_self_id": "n0", "preferred_leader_id": "n1;n7"}
    assert group_of(BrokerConfig(**settings)).preferred == ("n1",)
    assert "preferredLeaderId: n7 is no id of dLegerPeers" in caplog.text


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"d_leger_peers": "", "d_leger_self_id": "n0"}, "dLegerPeers"),
        ({"d_leger_peers": PEERS, "d_leger_self_id": "n3"}, "dLegerSelfId"),
        ({"d_leger_peers": "n0-host", "d_leger_self_id": "n0"}, "dLegerPeers"),
        ({"d_leger_peers": PEERS + ";n2-x:1", "d_leger_self_id": "n0"}, "dLegerPeers"),
        (
            {"d_leger_peers": PEERS, "d_leger_self_id": "n0", "enable_controller_mode": True},
            "enableControllerMode",
        ),
        (
            {
                "d_leger_peers": PEERS,
                "d_leger_self_id": "n0",
                "store_path_d_ledger_commit_log": "/disk-1/data,/disk-2/data",
            },
            "storePathDLedgerCommitLog",
        ),
    ],
)
def test_wrong_groups_are_refused(settings: dict[str, object], key: str) -> None:
    with pytest.raises(SettingsError, match=key):
        group_of(BrokerConfig(**settings))
