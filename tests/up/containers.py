"""Runs the containers of rendered objects of Kubernetes as programs of this machine.

A program gets command line and environment of its container. Adjusted are the interpreter, the
folders of mounts, addresses of pods (this machine) and ports that the objects do not set.
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from console.launcher.redis import find_server
from tests.support.cluster import ROOT
from tests.up import probes
from tests.up.gantry import clean_environment, status_of

READY_DEADLINE_S = 300.0
POLL_S = 0.05

#: Values of fields of the pod, by path.
FIELDS = {
    "status.podIP": "127.0.0.1",
    "status.hostIP": "127.0.0.1",
    "metadata.labels['apps.kubernetes.io/pod-index']": "0",
}


class Containers:
    """The containers of the objects; `ports` are the ports of this machine by name of a pod."""

    def __init__(
        self, objects: list[dict[str, Any]], folder: Path, secrets: dict[str, str]
    ) -> None:
        self._folder = folder
        self._secrets = secrets
        self._addresses: dict[str, str] = {}
        self._pods = [
            each["spec"]["template"]["spec"]
            for each in objects
            if "template" in each.get("spec", {})
        ]
        for each in objects:
            if each["kind"] == "ConfigMap":
                self._write(each)

    def _write(self, config_map: dict[str, Any]) -> None:
        folder = self._folder / "conf" / config_map["metadata"]["name"]
        folder.mkdir(parents=True)
        for name, text in config_map["data"].items():
            (folder / name).write_text(text)

    def names(self) -> list[str]:
        """All containers."""
        return [each["name"] for pod in self._pods for each in _containers(pod)]

    def place(self, name: str, address: str) -> None:
        """Let the name and port of a pod, or a whole argument, be an address of this machine."""
        self._addresses[name] = address

    def start(
        self, name: str, replica: int = 0, arguments: Sequence[str] = (), **environ: str
    ) -> subprocess.Popen[bytes]:
        """Start the program of a container, in the pod of a replica, with further arguments."""
        pod, container = self._find(name)
        command = [self._adjusted(part, pod, name, replica) for part in container["command"]]
        log = f"{name}-{replica}.log" if replica else f"{name}.log"
        with (self._folder / log).open("wb") as output:
            return subprocess.Popen(
                [*_program(command[0]), *command[1:], *arguments],
                cwd=ROOT,
                env={
                    **clean_environment(),
                    **self._environment(pod, container, replica),
                    **environ,
                },
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def are_passed(self, name: str, ports: Mapping[int, int]) -> bool:
        """Whether all probes of a container pass; `ports` are this machine's by the container's.

        Containers that end by themselves have none.
        """
        _, container = self._find(name)
        kinds = [kind for kind in probes.KINDS if kind in container]
        assert set(kinds) >= {"livenessProbe", "readinessProbe"}, f"{name} has no probes"
        return all(probes.passes(container, kind, ports) for kind in kinds)

    def printed(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def logs(self) -> list[Path]:
        return sorted(self._folder.glob("*.log"))

    def _find(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The pod and the container of a name."""
        return next(
            (pod, each) for pod in self._pods for each in _containers(pod) if each["name"] == name
        )

    def _environment(
        self, pod: dict[str, Any], container: dict[str, Any], replica: int
    ) -> dict[str, str]:
        values: dict[str, str] = {}
        for each in container.get("env", []):
            source = each.get("valueFrom", {})
            if "fieldRef" in source:
                value = FIELDS[source["fieldRef"]["fieldPath"]]
            elif "secretKeyRef" in source:
                value = self._secrets[source["secretKeyRef"]["key"]]
            else:
                value = each["value"]
            expanded = re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], value)
            values[each["name"]] = self._adjusted(expanded, pod, container["name"], replica)
        return values

    def _adjusted(self, text: str, pod: dict[str, Any], container: str, replica: int) -> str:
        if text in self._addresses:
            return self._addresses[text]
        volumes = {each["name"]: each for each in pod["volumes"]}
        if "conf" in volumes:
            conf = volumes["conf"]["configMap"]["name"]
            text = text.replace("/etc/gantry/conf", str(self._folder / "conf" / conf))
        owner = "console" if container in {"setup", "worker", "scheduler"} else container
        data = self._folder / "data" / (f"{owner}-{replica}" if replica else owner)
        data.mkdir(parents=True, exist_ok=True)
        text = text.replace("/var/lib/gantry", str(data))
        for name, address in self._addresses.items():
            text = text.replace(name, address) if ":" in name else text
        return text


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def _program(name: str) -> list[str]:
    """The program of this machine for the first word of a command."""
    if name == "python":
        return [sys.executable, "-u"]
    assert name == "valkey-server"
    server = find_server()
    if server is None:
        pytest.skip("no Valkey is installed here")
    return [str(server)]


def answers(url: str) -> bool:
    """Return whether the URL answers with the status 200."""
    try:
        return status_of(url) == 200
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], logs: Callable[[], Sequence[Path]]) -> None:
    """Wait for the condition; fail with the programs' output after the deadline."""
    deadline = time.monotonic() + READY_DEADLINE_S
    while not condition():
        texts = [f"{path.name}:\n{path.read_text()}" for path in logs()]
        assert time.monotonic() < deadline, "\n".join(texts)
        time.sleep(POLL_S)
