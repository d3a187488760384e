"""Requests to a provider of sign-ins end in time."""

import socket
from threading import Event, Thread

import pytest

from console.accounts.external import ProviderFailed
from console.accounts.oidc import http


def test_an_answer_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_S_MAX", 0.5)
    was_cut = Event()

    def trickle(listener: socket.socket) -> None:
        peer, _address = listener.accept()
        with peer:
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n")
            try:
                for _byte in range(300):
                    peer.sendall(b" ")
                    was_cut.wait(0.05)
            except OSError:
                was_cut.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = Thread(target=trickle, args=(listener,))
        sender.start()
        with pytest.raises(ProviderFailed):
            http.get(f"http://127.0.0.1:{listener.getsockname()[1]}/", "")
        sender.join()
    assert was_cut.is_set()
