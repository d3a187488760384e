"""Requests to receivers: addresses, redirects, statuses, slow and absent servers."""

import socket
import threading

import pytest

from console.services.alarms.sending import http
from console.services.alarms.sending.formats import Post
from console.services.alarms.sending.http import SendFailed, is_allowed, post
from tests.support.webhooks import webhook

LOCAL = ("127.0.0.0/8",)


def request(url: str) -> Post:
    return Post(url, b"{}", {"X-Gantry-Event": "test"})


def test_a_post_arrives_with_its_headers() -> None:
    with webhook() as hook:
        status, body = post(request(hook.url), LOCAL)
        assert (status, body) == (200, hook.body)
        ((path, headers, sent),) = hook.requests
    assert path == "/hook?key=url-secret-7"
    assert (headers["x-gantry-event"], sent) == ("test", b"{}")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.100.100.200",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "::ffff:127.0.0.1",
    ],
)
def test_private_addresses_need_permission(address: str) -> None:
    assert not is_allowed(address, ())
    plain = address.partition("%")[0].removeprefix("::ffff:")
    assert is_allowed(address, (plain,))


def test_public_addresses_need_none() -> None:
    assert is_allowed("1.1.1.1", ())
    assert is_allowed("2606:4700:4700::1111", ())
    assert not is_allowed("10.1.2.3", ("10.2.0.0/16",))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1"])
def test_no_request_goes_to_a_private_address(host: str) -> None:
    with webhook() as hook:
        with pytest.raises(SendFailed, match=r"CONSOLE_ALARM_NETWORKS|resolved") as failure:
            post(request(hook.url.replace("127.0.0.1", host)), ())
        assert not hook.requests
    assert failure.value.is_final or "resolved" in str(failure.value)


@pytest.mark.parametrize(
    ("status", "is_final"), [(302, True), (400, True), (404, True), (429, False), (503, False)]
)
def test_other_statuses_fail_and_redirects_are_not_followed(status: int, is_final: bool) -> None:
    with webhook() as hook:
        hook.answers.append(status)
        with pytest.raises(SendFailed, match=str(status)) as failure:
            post(request(hook.url), LOCAL)
        assert len(hook.requests) == 1
    assert failure.value.is_final is is_final


def test_an_absent_server_fails() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(SendFailed, match="does not answer") as failure:
        post(request(f"http://127.0.0.1:{port}/"), LOCAL)
    assert not failure.value.is_final


def test_a_server_that_trickles_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_S_MAX", 0.5)
    ended = threading.Event()

    def trickle(listener: socket.socket) -> None:
        peer, _addr = listener.accept()
        with peer:
            try:
                while not ended.wait(0.05):
                    peer.sendall(b"H")
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=trickle, args=(listener,), daemon=True)
        thread.start()
        with pytest.raises(SendFailed):
            post(request(f"http://127.0.0.1:{listener.getsockname()[1]}/"), LOCAL)
        ended.set()
        thread.join()


def test_a_server_without_http_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _addr = listener.accept()
            with peer:
                peer.recv(65_536)
                peer.sendall(b"\x00\xff no http\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(SendFailed):
            post(request(f"http://127.0.0.1:{listener.getsockname()[1]}/"), LOCAL)
        thread.join()
