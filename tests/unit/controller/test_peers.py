"""The members of a group in the settings."""

import pytest

from core_broker.config import ControllerConfig
from core_broker.controller.peers import peers_of
from core_broker.errors import SettingsError


def test_the_default_is_one_controller() -> None:
    peers = peers_of(ControllerConfig())
    assert (peers.group, peers.self_number, peers.text) == ("controller", 1, "n0:127.0.0.1:9878;")
    assert (peers.own.raft_host, peers.own.raft_port) == ("127.0.0.1", 9879)


def test_three_controllers_with_ports_of_their_own() -> None:
    peers = peers_of(
        ControllerConfig(
            controller_d_leger_peers="n2-h2:30;n0-h0:10; n1-h1:20;",
            controller_raft_peers="n0-r0:1;n1-r1:2;n2-r2:3",
            controller_d_leger_self_id="n1",
        )
    )
    assert list(peers.by_number) == [1, 2, 3]
    assert peers.text == "n0:h0:10;n1:h1:20;n2:h2:30;"
    assert peers.self_number == 2
    assert [(peer.raft_host, peer.raft_port) for peer in peers.by_number.values()] == [
        ("r0", 1),
        ("r1", 2),
        ("r2", 3),
    ]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"controller_d_leger_peers": ""}, "controllerDLegerSelfId"),
        ({"controller_d_leger_self_id": "n7"}, "controllerDLegerSelfId"),
        ({"controller_d_leger_peers": "n0-host"}, "controllerDLegerPeers"),
        ({"controller_d_leger_peers": "n0-host:0"}, "controllerDLegerPeers"),
        ({"controller_d_leger_peers": "n0-host:65536"}, "controllerDLegerPeers"),
        ({"controller_d_leger_peers": "first-host:1"}, "controllerDLegerPeers"),
        ({"controller_d_leger_peers": "n0-a:1;m0-b:2"}, "controllerDLegerPeers"),
        (
            {"controller_d_leger_peers": ";".join(f"n{n}-h:{n + 1}" for n in range(10))},
            "controllerDLegerPeers",
        ),
        ({"controller_raft_peers": "n1-h:1"}, "controllerRaftPeers"),
        ({"controller_raft_peers": "h:1"}, "controllerRaftPeers"),
    ],
)
def test_peers_of_no_use_are_named(settings: dict[str, str], key: str) -> None:
    with pytest.raises(SettingsError) as failure:
        peers_of(ControllerConfig(**settings))  # type: ignore[arg-type]
    assert key in str(failure.value)
