"""Read-only clusters: every write is refused on the server, and each page says so."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from console.areas.topics.resource import TOPIC
from console.audit.models import AuditRow
from console.environment import ClusterMark
from console.frame.access import Need, need_of
from console.gateway import ReadOnly, gateway
from console.services.clusters.models import ReadOnlyCluster
from tests.api.conftest import Api, browser
from tests.support.cluster import Cluster
from tests.support.routes import ABSENT, Route, routes

PAGE = "/clusters/local/read-only/"
SWITCH = {"clusters:read-only", "api-read-only"}
#: Writes that change the console only.
ALLOWED = {
    "message:export",
    "api-messages-exports",
    "exports:table",
    "api-exports",
    "jobs:start",
    "jobs:cancel",
    "jobs:pause",
    "jobs:resume",
    "jobs:continue",
    "api-jobs",
    "api-job-cancel",
    "api-job-pause",
    "api-job-resume",
    "api-job-continue",
    "masking:create",
    "masking:rule",
    "api-masking-rules",
    "api-masking-rules-preview",
    "api-masking-rule",
    "schemas:upload",
    "schemas:rule-create",
    "schemas:rule",
    "schemas:schema",
    "api-body-schema",
    "api-body-rules",
    "api-body-rule",
}
pytestmark = pytest.mark.must_beat(20)


@pytest.fixture
def frozen(local: Cluster, db: None) -> None:
    ReadOnlyCluster.objects.create(cluster="local", since_ms=1)


def writes() -> list[tuple[Route, str]]:
    return [
        (route, method)
        for route in routes()
        if "<str:cluster>" in route.pattern or route.is_classic
        for method in route.methods
        if method != "get" and need_of(route.view, method.upper()) in (Need.WRITE, Need.ADMIN)
    ]


def test_every_write_route_answers_403_read_only(staff: User, frozen: None) -> None:
    script, page = Api(staff).client, browser(staff)
    refused = set()
    for route, method in writes():
        if route.name in SWITCH:
            continue
        by_script = route.is_api or route.is_classic
        more: dict[str, Any] = (
            {"data": "{}", "content_type": "application/json"} if by_script else {}
        )
        answer = getattr(script if by_script else page, method)(route.path(ABSENT), **more)
        if route.name in ALLOWED:
            assert answer.status_code != 403, route.name
            continue
        assert answer.status_code == 403, f"{method} {route.name}: {answer.status_code}"
        if route.is_api:
            assert answer.json()["code"] == "read_only", route.name
        else:
            assert b"is read-only" in answer.content, route.name
        refused.add(route.name)
    assert {"api-topics", "topics:create", "message:send", "api-offsets"} <= refused
    assert "classic:dlqMessage/batchResendDlqMessage.do" in refused
    rows = AuditRow.objects.filter(result="denied")
    assert set(rows.values_list("reason", flat=True)) == {"read_only"}


def test_a_command_of_a_job_is_refused_and_a_dry_run_is_not(frozen: None) -> None:
    cluster = gateway.cluster("local")
    form = TOPIC.create_serializer(data={"name": "frozen"})
    form.is_valid(raise_exception=True)
    settings = form.settings()  # type: ignore[attr-defined]
    with pytest.raises(ReadOnly):
        cluster.do(TOPIC.create, "frozen", settings, None)
    assert cluster.do(TOPIC.create, "frozen", settings, None, dry_run=True)


def test_the_page_turns_the_state_on_and_off(staff: User, reader: User, local: Cluster) -> None:
    admin, other = browser(staff), browser(reader)
    topics = "/clusters/local/topics/"
    assert b"data-read-only" not in other.get(topics).content
    assert b"create-topic" in admin.get(topics).content
    admin.post(PAGE, {"on": "1", "reason": "audit week"})
    assert b"data-read-only" in other.get(topics).content
    assert b"create-topic" not in admin.get(topics).content
    assert b"audit week" in admin.get(PAGE).content
    assert other.post(PAGE, {"off": "1"}).status_code == 403
    admin.post(PAGE, {"off": "1"})
    assert b"data-read-only" not in other.get(topics).content
    done = AuditRow.objects.filter(result="done").order_by("pk").values_list("action", flat=True)
    assert list(done) == ["cluster.read-only.on", "cluster.read-only.off"]


def test_the_resource_and_the_setting(api: Api, settings: Settings) -> None:
    said = api("put", "/read-only", {"reason": "r"}).json()
    assert (said["read_only"], said["reason"], said["changed_by"]) == (True, "r", "staff")
    assert api("put", "/read-only", {"reason": "r" * 201}).status_code == 400
    assert api("delete", "/read-only").json()["read_only"] is False
    settings.CONSOLE_READ_ONLY_CLUSTERS = frozenset({"local"})
    assert api.get("/read-only")["from_environment"] is True
    assert api("delete", "/read-only").status_code == 409
    assert api("post", "/topics", {"name": "t"}).json()["code"] == "read_only"


def test_a_confirmation_names_the_production_cluster(
    staff: User, local: Cluster, settings: Settings
) -> None:
    page = browser(staff)
    paths = ("create-topic", "topics/TBW102/delete", "messages/send")
    for path in paths:
        assert b"data-production" not in page.get(f"/clusters/local/{path}/").content, path
    settings.CONSOLE_CLUSTER_MARKS = {"local": ClusterMark("red", production=True)}
    for path in paths:
        assert b'data-production="local"' in page.get(f"/clusters/local/{path}/").content, path
