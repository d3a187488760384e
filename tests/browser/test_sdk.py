"""A Python SDK generated from the OpenAPI document of the running console, used against it."""

import importlib
import os
import shlex
import subprocess
import sys
import uuid
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import ROOT, Gantry
from tests.browser.waiting import wait_until
from tests.support.document_blocks import blocks_of

PACKAGE = "gantry_sdk"
GENERATOR_TIMEOUT_S = 300


@pytest.fixture
def sdk(gantry: Gantry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Generate the package with the command of docs/api.md; yields an importing function."""
    (tmp_path / "generator.yml").write_text("post_hooks: []\n")
    command = next(each.code for each in blocks_of("docs/api.md") if "openapi" in each.code)
    program, *arguments = shlex.split(command.replace("http://127.0.0.1:8082", gantry.url))
    assert PACKAGE in arguments
    subprocess.run(
        [
            Path(sys.executable).parent / program,
            *arguments,
            *("--config", tmp_path / "generator.yml", "--fail-on-warning"),
        ],
        cwd=tmp_path,
        check=True,
        timeout=GENERATOR_TIMEOUT_S,
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    for name in [each for each in sys.modules if each.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def token(gantry: Gantry) -> str:
    made = subprocess.run(
        [sys.executable, "manage.py", "create_token", "admin"],
        cwd=ROOT,
        env={**os.environ, "GANTRY_HOME": str(gantry.home)},
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.strip()


@pytest.mark.must_beat(28)
def test_a_generated_sdk_lists_creates_pages_through_and_deletes(gantry: Gantry, sdk: Any) -> None:
    with sdk("client").AuthenticatedClient(
        base_url=gantry.url, token=token(gantry), prefix="Bearer", timeout=60
    ) as client:
        use(client, gantry, sdk)
        change_twice(client, sdk)
        list_clusters(client, gantry, sdk)


def use(client: Any, gantry: Gantry, sdk: Any) -> None:
    topics, models = "api.topics.", sdk("models")
    word = f"sdk{uuid.uuid4().hex[:8]}"
    names = [f"{word}-{number}" for number in range(3)]
    create = sdk(f"{topics}create_topic")
    for name in names:
        body = models.TopicCreateRequest(name=name, write_queues=1, read_queues=1)
        answer = create.sync_detailed(gantry.cluster, client=client, body=body)
        assert answer.status_code == HTTPStatus.CREATED, answer.content
    list_topics = sdk(f"{topics}list_topics").sync

    def walked() -> list[str]:
        found, cursor = [], None
        while True:
            more: dict[str, str] = {} if cursor is None else {"cursor": cursor}
            page = list_topics(gantry.cluster, client=client, q=word, limit=2, **more)
            found += [item.name for item in page.items]
            assert page.total >= len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return found

    wait_until(lambda: walked() == names, "the three topics, page by page")
    one = sdk(f"{topics}get_topic").sync(gantry.cluster, names[0], client=client)
    assert (one.name, one.write_queues) == (names[0], 1)
    change_topic(client, gantry, sdk, names[0])
    delete = sdk(f"{topics}delete_topic")
    for name in names:
        answer = delete.sync_detailed(gantry.cluster, name, client=client)
        assert answer.status_code == HTTPStatus.OK, answer.content
    wait_until(lambda: not walked(), "no topics")
    refused = sdk(f"{topics}get_topic").sync_detailed(gantry.cluster, names[0], client=client)
    assert refused.status_code == HTTPStatus.NOT_FOUND


def change_topic(client: Any, gantry: Gantry, sdk: Any, name: str) -> None:
    """Preview a change, and apply the change: one function with two answers."""
    models = sdk("models")
    body = models.PatchedTopicPatchRequest(read_queues=2)

    def change(*, dry_run: bool) -> Any:
        update = sdk("api.topics.update_topic").sync
        return update(gantry.cluster, name, client=client, body=body, dry_run=dry_run)

    preview = change(dry_run=True)
    assert isinstance(preview, models.DryRun)
    (line,) = [each for each in preview.changes if each.field == "read_queue_nums"]
    assert (line.before, line.after) == (1, 2)
    outcomes = change(dry_run=False)
    assert isinstance(outcomes, models.Outcomes)
    assert [each.error for each in outcomes.outcomes] == [None]


def change_twice(client: Any, sdk: Any) -> None:
    """Change a role with the ETag of its last state, and with an old one."""
    roles, models, name = "api.roles.", sdk("models"), f"sdk{uuid.uuid4().hex[:8]}"
    new = models.RolePostRequest(name=name, permissions=["topics:read"])
    made = sdk(f"{roles}create_role").sync_detailed(client=client, body=new)
    assert made.status_code == HTTPStatus.CREATED, made.content
    etag = sdk(f"{roles}get_role").sync_detailed(name, client=client).headers["ETag"]

    def change(permission: str) -> Any:
        body = models.RolePutRequest(permissions=[permission])
        replace = sdk(f"{roles}replace_role").sync_detailed
        return replace(name, client=client, body=body, if_match=etag)

    assert change("groups:read").status_code == HTTPStatus.OK
    assert change("messages:read").status_code == HTTPStatus.PRECONDITION_FAILED
    kept = sdk(f"{roles}get_role").sync(name, client=client)
    assert kept.permissions == ["groups:read"]
    delete = sdk(f"{roles}delete_role").sync_detailed
    refused = delete(name, client=client, if_match=etag)
    assert refused.status_code == HTTPStatus.PRECONDITION_FAILED
    deleted = delete(name, client=client)
    assert deleted.status_code == HTTPStatus.NO_CONTENT


def list_clusters(client: Any, gantry: Gantry, sdk: Any) -> None:
    """Read a list that is a page with a limit, and a deprecated array without."""
    listed = sdk("api.clusters.list_clusters").sync
    page = listed(client=client, limit=1)
    assert [each.name for each in page.items] == [gantry.cluster]
    assert (page.total, page.next_cursor) == (1, None)
    assert [each.name for each in listed(client=client)] == [gantry.cluster]
