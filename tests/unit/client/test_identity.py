"""Client ids and unique keys."""

import os
import threading

import pytest

from core_broker.client.identity import new_client_id, new_uniq_key, now_ms
from core_broker.message.ids import parse_uniq_key


def test_clients_of_one_process_have_ids_of_their_own() -> None:
    first, second = new_client_id(), new_client_id()
    assert first != second
    assert f"@{os.getpid()}#" in first
    assert new_client_id("DEFAULT").endswith("@DEFAULT")


def test_unique_keys_tell_process_and_time() -> None:
    begin = now_ms()
    key = parse_uniq_key(new_uniq_key(), now_ms() + 1)
    assert key.pid == os.getpid() & 0xFFFF
    assert begin <= key.created_ms <= now_ms()


def test_threads_never_share_a_key() -> None:
    keys: list[str] = []

    def make() -> None:
        keys.extend([new_uniq_key() for _ in range(5000)])

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 20_000


def test_a_forked_child_does_not_repeat_the_keys_of_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parents = new_uniq_key()
    monkeypatch.setattr(os, "getpid", lambda: 4242)
    childs = new_uniq_key()
    # Characters of the address, then of the process id and process number; the child's differ.
    assert childs[:8] == parents[:8]
    assert childs[12:20] != parents[12:20]
    assert parse_uniq_key(childs, now_ms() + 1).pid == 4242
