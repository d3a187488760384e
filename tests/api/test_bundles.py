"""The debug bundle: what is in it, that no seeded secret is, who may start one."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django import Settings

from console.gateway import Credentials, gateway
from console.services.alarms import receivers
from console.services.bundles import job as bundle_job
from console.services.bundles import parts
from console.services.bundles.bundle import write
from console.services.bundles.masking import Mask, known_secrets
from console.services.clusters import credentials
from console.services.jobs import files, tasks
from console.services.jobs.models import Job
from console.services.jobs.states import State
from tests.api.conftest import Api
from tests.support.cluster import Cluster

pytestmark = pytest.mark.must_beat(40)
SECRETS = {
    "secret key of the console": "django-secret-4711",
    "password of Redis": "redis-password-4711",
    "password of the database": "database-password-4711",
    "password of the mail server": "smtp-password-4711",
    "token of /metrics": "metrics-token-4711",
    "secret key of the cluster": "cluster-secret-4711",
    "path of a chat robot": "robot-path-4711",
    "query of a webhook": "robot-query-4711",
    "secret of a webhook": "hook-secret-4711",
    "bearer token in a log": "bearer-token-4711-abcdef",
    "password in a log": "log-password-4711",
    "password in a URL of a log": "url-password-4711",
    "private key in a log": "private-key-4711",
}


@pytest.fixture
def seeded(
    local: Cluster,
    staff: User,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Plant every secret where the console keeps one, and in a log."""
    settings.GANTRY_HOME = tmp_path
    settings.SECRET_KEY = SECRETS["secret key of the console"]
    settings.REDIS_URL = f"redis://:{SECRETS['password of Redis']}@127.0.0.1:1/0"
    settings.EMAIL_HOST_PASSWORD = SECRETS["password of the mail server"]
    settings.METRICS_TOKEN = SECRETS["token of /metrics"].encode()
    key = SECRETS["secret key of the cluster"]
    cluster = gateway.cluster("local")
    credentials.save(cluster, Credentials("account", key, ""), staff)
    cluster.signing.use(None)  # the shared cluster has no access control
    robot = f"https://robot.example.org/{SECRETS['path of a chat robot']}"
    query = f"?key={SECRETS['query of a webhook']}"
    usual = {"enabled": True, "all_rules": True, "language": "en", "recipients": ""}
    secret = SECRETS["secret of a webhook"]
    draft = receivers.Draft(name="robot", kind="slack", url=robot + query, secret=secret, **usual)
    receivers.save(None, draft, staff)
    (tmp_path / "logs").mkdir()
    lines = [
        "an ordinary line, 東京",
        f"Authorization: Bearer {SECRETS['bearer token in a log']}",
        f"connect password={SECRETS['password in a log']}; retry",
        f'{{"secretKey": "{SECRETS["password in a log"]}", "topic": "orders"}}',
        f"postgres://gantry:{SECRETS['password in a URL of a log']}@db/gantry",
        f"sent to {robot}{query} with {secret}",
        f"database {SECRETS['password of the database']}",
        "-----BEGIN PRIVATE KEY-----",
        SECRETS["private key in a log"],
        "-----END PRIVATE KEY-----",
        f"signed with {key} and {SECRETS['secret key of the console']}",
        f"{SECRETS['token of /metrics']} {SECRETS['password of the mail server']}",
        SECRETS["password of Redis"],
    ]
    (tmp_path / "logs" / "worker.log").write_text("\n".join(lines), encoding="utf-8")
    password = SECRETS["password of the database"]
    monkeypatch.setitem(settings.DATABASES["default"], "PASSWORD", password)
    return tmp_path


def content(archive: zipfile.ZipFile) -> str:
    return "\n".join(archive.read(name).decode() for name in archive.namelist())


def test_no_seeded_secret_is_in_the_bundle(seeded: Path, api: Api) -> None:
    api.get("/findings")
    output = io.BytesIO()
    *_states, written = write(gateway.cluster("local"), output)
    assert not written.failed
    with zipfile.ZipFile(output) as archive:
        assert archive.testzip() is None
        everything = content(archive)
        names = archive.namelist()
        log = archive.read("logs/worker.log").decode()
        runtime = json.loads(archive.read("brokers/broker-a-0.json"))["runtime"]
        findings = json.loads(archive.read("findings.json"))
    leaked = [name for name, secret in SECRETS.items() if secret in everything]
    assert not leaked
    expected = {"versions.json", "settings.json", "findings.json", "alarms.json", "samples.json"}
    more = {"brokers.json", "broker-settings.json", "metrics.txt", "jobs.json", "manifest.json"}
    assert expected | more <= set(names)
    assert "an ordinary line, 東京" in log
    assert '"topic": "orders"' in log, "the mask takes no more than the secret"
    assert "brokerVersionDesc" in runtime
    assert findings["checks"]


def test_a_part_that_fails_is_named_and_the_others_are_there(
    seeded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_cluster: object) -> object:
        raise RuntimeError(f"no part with {SECRETS['secret of a webhook']}")

    monkeypatch.setattr("console.services.bundles.bundle.PARTS", {**parts.PARTS, "alarms": fail})
    output = io.BytesIO()
    *_states, written = write(gateway.cluster("local"), output)
    assert list(written.failed) == ["alarms"]
    with zipfile.ZipFile(output) as archive:
        assert "versions.json" in archive.namelist()
        manifest = archive.read("manifest.json").decode()
    assert "RuntimeError: no part with ***" in manifest


def test_an_administrator_starts_the_job_and_downloads_its_file(
    seeded: Path, api: Api, operator: User, monkeypatch: pytest.MonkeyPatch, staff: User
) -> None:
    monkeypatch.setattr(tasks, "redis_problem", lambda: None)
    monkeypatch.setattr(tasks.run_job, "apply_async", lambda arguments, retry: None)
    body = {"kind": bundle_job.KIND}
    assert Api(operator)("post", "/jobs", body).status_code == 403
    started = api("post", "/jobs", body)
    assert started.status_code in (201, 202), started.content
    number = started.json()["id"]
    tasks.run_job(number)
    job = Job.objects.get(pk=number)
    assert (job.state, job.error) == (State.SUCCEEDED, "")
    (file,) = files.listing(number)
    path = files.path_of(number, file.name)
    assert path is not None
    with zipfile.ZipFile(path) as archive:
        assert "manifest.json" in archive.namelist()


def test_the_command_writes_a_bundle(seeded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = seeded / "bundle.zip"
    call_command("debug_bundle", "local", str(target))
    assert "files" in capsys.readouterr().out
    with zipfile.ZipFile(target) as archive:
        assert not [name for name, secret in SECRETS.items() if secret in content(archive)]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=abc123 next", "password=*** next"),
        ('"accessKey": "AKIA7"', '"accessKey": "***"'),
        ("secretKey: x, topic: y", "secretKey: ***, topic: y"),
        ("X-Token: aaaa", "X-Token: ***"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"),
        ("amqp://user:pw@host/x", "amqp://user:***@host/x"),
        ('"has_secret": true', '"has_secret": true'),
        ("tokens 5 of 7", "tokens 5 of 7"),
        ("nothing here", "nothing here"),
    ],
)
def test_texts_that_look_like_a_secret(text: str, masked: str) -> None:
    assert Mask([]).text(text) == masked


@pytest.mark.usefixtures("seeded")
def test_short_secrets_do_not_shred_the_texts() -> None:
    assert "" in set(known_secrets())
    assert Mask(["", "a", "abc"]).text("abcabc") == "abcabc"
