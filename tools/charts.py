"""Lints and renders the Helm chart, and validates the objects against Kubernetes' own schemas.

    tools/setup.sh charts && build/charts/bin/python tools/charts.py          report as JSON
    build/charts/bin/python tools/charts.py --write                           also deploy/kubernetes
    build/charts/bin/python tools/charts.py --validate FILE                   problems of objects

Helm's library and the schemas of three versions of Kubernetes come from Python packages, so that
no program and no file has to be downloaded. ServiceMonitor is no object of Kubernetes.
"""

import json
import sys
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "deploy" / "chart" / "gantry"
MANIFESTS = ROOT / "deploy" / "kubernetes"
#: The three newest versions of Kubernetes, of which docs/kubernetes.md speaks.
VERSIONS = ("1.35.0", "1.36.0", "1.37.0")
FOREIGN_KINDS = {"ServiceMonitor"}
NAMESPACE = "gantry"

#: The plain manifests: file name and values.
PLAIN: dict[str, dict[str, Any]] = {
    "smallest": {},
    "replicated": {
        "namesrv": {"replicas": 2},
        "brokers": {"sets": [{"name": "broker-a", "replicas": 3}]},
        "controllers": {"replicas": 3},
    },
    "console": {"console": {"enabled": True, "existingSecret": "gantry-console"}},
}
OTHERS: dict[str, dict[str, Any]] = {
    "full": yaml.safe_load((CHART / "values-full.yaml").read_text(encoding="utf-8")),
    "elected": {
        "brokers": {"sets": [{"name": "broker-a", "replicas": 2}]},
        "controllers": {"replicas": 1},
    },
    "percore": {"brokers": {"count": 3, "address": "hostNetwork"}},
    "nodeport": {
        "namesrv": {"nodePort": 30876},
        "brokers": {
            "address": "nodePort",
            "sets": [{"name": "broker-a", "replicas": 1, "nodePort": 30911}],
        },
        "networkPolicy": {"enabled": True},
    },
}
HEADER = """\
# Written by `make manifests` from deploy/chart/gantry; edit the chart, not this file.
#     kubectl create namespace gantry
#     kubectl -n gantry apply -f {name}.yaml
"""


def main() -> int:
    if sys.argv[1:2] == ["--validate"]:
        found = problems("given", json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
        print(json.dumps(found))  # noqa: T201 - the report is the program's output
        return 0
    rendered = {name: render(values) for name, values in {**PLAIN, **OTHERS}.items()}
    if "--write" in sys.argv:
        for name in PLAIN:
            (MANIFESTS / f"{name}.yaml").write_text(plain(name, rendered[name]), encoding="utf-8")
    report = {
        "lint": {name: lint(values) for name, values in {**PLAIN, **OTHERS}.items()},
        "objects": rendered,
        "problems": [text for name in rendered for text in problems(name, rendered[name])],
        "versions": [list(VERSIONS), kubernetes_validate.utils.all_versions()],
        "plain": {name: plain(name, rendered[name]) for name in PLAIN},
        "control": problems("control", [with_a_wrong_field(rendered["smallest"])]),
        "refused": {text: refusal(values) for text, values in REFUSED.items()},
    }
    print(json.dumps(report))  # noqa: T201 - the report is the program's output
    return 0


#: Values that must be refused, with a word of the reason.
REFUSED: dict[str, dict[str, Any]] = {
    "controllers.replicas": {"brokers": {"sets": [{"name": "a", "replicas": 2}]}},
    "needs a nodePort": {"brokers": {"address": "nodePort"}},
    "at most 26": {"brokers": {"count": 27}},
    "needs spark.image": {"console": {"enabled": True}, "spark": {"master": "k8s://api"}},
    "needs console.accessMode": {
        "console": {"enabled": True},
        "spark": {"master": "k8s://api", "image": "gantry-spark:0.1.0"},
    },
    "brokers.address is": {"brokers": {"address": "anywhere"}},
}


def lint(values: dict[str, Any]) -> list[str]:
    """Return the errors and warnings of `helm lint --strict`."""
    report = helm_python.lint(CHART, values, strict=True)
    return [*report["errors"], *(m["error"] for m in report["messages"] if m["severity"] > 1)]


def render(values: dict[str, Any]) -> list[dict[str, Any]]:
    with helm_python.Chart.load(CHART) as chart:
        files = chart.render(values, name="gantry", namespace=NAMESPACE)
    texts = [files[name] for name in sorted(files) if name.endswith(".yaml")]
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


def refusal(values: dict[str, Any]) -> str:
    try:
        render(values)
    except helm_python.HelmError as problem:
        return str(problem)
    return ""


def problems(name: str, objects: list[dict[str, Any]]) -> list[str]:
    """Validate the objects strictly: an unknown field is a problem."""
    found = []
    for version in VERSIONS:
        for each in objects:
            if each["kind"] in FOREIGN_KINDS:
                continue
            try:
                kubernetes_validate.validate(each, version, strict=True)
            except kubernetes_validate.ValidationError as problem:
                found.append(
                    f"{name} {version} {each['kind']} {each['metadata']['name']}: {problem}"
                )
    return found


def with_a_wrong_field(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an object that the validation must refuse."""
    service = next(each for each in objects if each["kind"] == "Service")
    return {**service, "spec": {**service["spec"], "selektor": {}}}


def plain(name: str, objects: list[dict[str, Any]]) -> str:
    """Return the objects as a manifest, without Helm's own labels."""
    text = HEADER.format(name=name)
    for each in objects:
        text += "---\n" + yaml.safe_dump(without_helm(each), sort_keys=False)
    return text


def without_helm(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: without_helm(value)
            for key, value in node.items()
            if key not in {"helm.sh/chart", "app.kubernetes.io/managed-by"}
        }
    if isinstance(node, list):
        return [without_helm(each) for each in node]
    return node


if __name__ == "__main__":
    sys.exit(main())
