"""Checkov's policies for Kubernetes against every object of the chart.

Each exception is named once, with the objects and the reason; any other finding fails. Checkov sees
all objects together: the NetworkPolicies of some values stand for those of the others, where
networkPolicy.enabled is not set because the network plug-in has to support policies.
"""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import ROOT
from tests.up.chart_report import PYTHON, chart_report

CHECKOV = ROOT / "build" / "policies" / "bin" / "checkov"
DEADLINE_S = 300.0
#: The values' name of an object that breaks two policies.
BARE = "bare"
WORKLOAD = r"(StatefulSet|Deployment|Pod)\."

#: Objects as kind.values.name, and the reason, by policy.
EXCEPTIONS = {
    # CPU limits
    "CKV_K8S_11": (
        WORKLOAD,
        "a CPU limit stops the event loop for the rest of a period, which is a stall of every "
        "client; requests share the CPU instead",
    ),
    # imagePullPolicy Always
    "CKV_K8S_15": (
        WORKLOAD,
        "tags of a release do not change, and a pod has to restart without the registry; "
        "image.pullPolicy is a value",
    ),
    # no host network
    "CKV_K8S_19": (
        r"StatefulSet\.\w+\.gantry-broker-",
        "only with brokers.address hostNetwork: clients outside connect to the node",
    ),
    # secrets as files
    "CKV_K8S_35": (
        r"StatefulSet\.\w+\.gantry-(namesrv|broker-.|controller|console|postgresql)$",
        "RocketMQ's keys of access control and Django's are variables; TLS keys and tokens are "
        "files",
    ),
    # high user ids
    "CKV_K8S_40": (
        r"(StatefulSet\.\w+\.gantry-postgresql|Deployment\.\w+\.gantry-redis)$",
        "user 999 owns the files in the images of PostgreSQL and Valkey",
    ),
    # digests
    "CKV_K8S_43": (
        WORKLOAD,
        "the chart's version names the tag, and image.tag accepts a tag with a digest",
    ),
}

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (PYTHON.exists() and CHECKOV.exists()),
        reason="no Helm library or no checkov here: tools/setup.sh charts",
    ),
]


def findings(objects: dict[str, list[dict[str, Any]]], folder: Path) -> set[tuple[str, str]]:
    """The failed policies and their objects; `objects` by name of the values."""
    for name, each in objects.items():
        # `helm install --namespace` gives the namespace.
        placed = [{**one, "metadata": {**one["metadata"], "namespace": name}} for one in each]
        listed = {"apiVersion": "v1", "kind": "List", "items": placed}
        (folder / f"{name}.json").write_text(json.dumps(listed), encoding="utf-8")
    options = ("--skip-download", "--framework", "kubernetes", "--compact", "-o", "json")
    done = subprocess.run(
        [CHECKOV, *options, "-d", folder],
        env={**os.environ, "LOG_LEVEL": "ERROR"},
        check=False,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["resource_count"] >= sum(len(each) for each in objects.values())
    return {(each["check_id"], each["resource"]) for each in report["results"]["failed_checks"]}


def is_excepted(policy: str, resource: str) -> bool:
    return policy in EXCEPTIONS and bool(re.match(EXCEPTIONS[policy][0], resource))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str]]:
    """The findings of one run, about the chart's objects and about a container without probes."""
    objects = chart_report()["objects"]
    found = findings(
        {**objects, BARE: [without_probes(objects["smallest"])]},
        tmp_path_factory.mktemp("policies"),
    )
    assert found, "checkov has found nothing at all"
    return found


def without_probes(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """A workload of the chart without its probes."""
    workload = next(each for each in objects if each["kind"] == "StatefulSet")
    container = workload["spec"]["template"]["spec"]["containers"][0]
    bare = {name: value for name, value in container.items() if not name.endswith("Probe")}
    text = json.dumps(workload).replace(json.dumps(container), json.dumps(bare))
    return dict(json.loads(text))


def is_bare(resource: str) -> bool:
    return f".{BARE}." in resource


def test_objects_keep_the_policies(found: set[tuple[str, str]]) -> None:
    of_chart = {each for each in found if not is_bare(each[1])}
    assert sorted(each for each in of_chart if not is_excepted(*each)) == []
    assert {policy for policy, _ in of_chart} == set(EXCEPTIONS), "an exception without an object"


def test_a_container_without_probes_is_a_finding(found: set[tuple[str, str]]) -> None:
    assert {policy for policy, each in found if is_bare(each)} >= {"CKV_K8S_8", "CKV_K8S_9"}
    assert not EXCEPTIONS.keys() & {"CKV_K8S_8", "CKV_K8S_9"}
