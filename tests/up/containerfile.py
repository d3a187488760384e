"""Reads a Containerfile, and executes its instructions in overlays of this machine's root.

No registry of images is needed: the base of each stage is an overlay of this machine's root, with
this interpreter in /usr/local, as in the images of Python. apt-get, pip and compilers write to a
tmpfs. All mounts are in the mount namespace of one process, and end with the process.
"""

import json
import os
import re
import shlex
import shutil
import string
import subprocess
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

STEP_DEADLINE_S = 900.0
BASE_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Instructions of the configuration, which change no file.
CONFIGURATION = ("CMD", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "USER", "VOLUME")

#: Arguments: root, folder of the layer, prefix of the interpreter, folder of the clone.
BASE = """
set -eu
mkdir -p "$1" "$2"
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$2/upper,workdir=$2/work" "$1"
if [ "$3" = /usr ]; then
    ln -sf /usr/bin/python3 "$1/usr/local/bin/python"
else
    mkdir "$2/python" "$2/scratch"
    mount -t overlay overlay -o "lowerdir=$3,upperdir=$2/python,workdir=$2/scratch" "$1/usr/local"
    chroot "$1" /sbin/ldconfig
fi
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
mount -t tmpfs -o mode=755 tmpfs "$1$4"
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev"
"""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction with its text in one line, without options."""

    name: str
    options: dict[str, str]
    text: str

    @property
    def words(self) -> list[str]:
        """The arguments: a JSON array, or words."""
        text = self.text.removeprefix("CMD ").strip()
        parsed: list[str] = json.loads(text) if text.startswith("[") else shlex.split(text)
        return parsed


@dataclass(slots=True)
class Stage:
    """A stage: its root, variables, and the instructions of its configuration by name."""

    root: Path
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": BASE_PATH})
    folder: str = "/"
    configuration: dict[str, Instruction] = field(default_factory=dict)


def instructions(text: str) -> list[Instruction]:
    """Return the instructions of a Containerfile; comments are left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        name, _, rest = line.strip().partition(" ")
        rest, options = rest.strip(), {}
        while option := re.match(r"--([\w-]+)=(\S+)\s+", rest):
            options[option[1]] = option[2]
            rest = rest[option.end() :]
        found.append(Instruction(name, options, rest))
    return found


def copy_context(source: Path, target: Path) -> None:
    """Copy a build context as builders do: all files but those of .dockerignore."""
    lines = (source / ".dockerignore").read_text(encoding="utf-8").splitlines()
    ignored = [line.strip() for line in lines if line.strip() and not line.startswith("#")]

    def ignore(folder: str, names: list[str]) -> set[str]:
        paths = {name: (Path(folder) / name).relative_to(source).as_posix() for name in names}
        return {name for name in names if any(matches(paths[name], each) for each in ignored)}

    shutil.copytree(source, target, ignore=ignore, symlinks=True)


def matches(path: str, pattern: str) -> bool:
    """Return whether a pattern of .dockerignore names the path itself."""
    if pattern.startswith("**/"):
        return fnmatch(Path(path).name, pattern.removeprefix("**/"))
    return path.count("/") == pattern.count("/") and fnmatch(path, pattern)


class Builder:
    """Executes the instructions; `context` is the folder that COPY reads, `hidden` a folder that
    no stage sees. With `wheels`, pip installs from this folder only, and compiles no bytecode."""

    def __init__(
        self, folder: Path, context: Path, hidden: Path, wheels: Path | None = None
    ) -> None:
        self._folder = folder
        self._context = context
        self._hidden = hidden
        self._wheels = wheels
        self._stages: dict[str, Stage] = {}
        #: Owns the mount namespace.
        self._owner = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", "echo ready; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._owner.stdout is not None
        self._owner.stdout.readline()

    def close(self) -> None:
        """End the mount namespace."""
        self._owner.communicate(timeout=STEP_DEADLINE_S)

    def inside(self, *command: str) -> list[str]:
        """Return the command line that runs a command where the roots are mounted."""
        return ["nsenter", "-m", "-t", str(self._owner.pid), "--", *command]

    def build(self, text: str) -> Stage:
        """Execute all instructions; return the last stage."""
        stage = Stage(Path())
        variables: dict[str, str] = {}
        for each in instructions(text):
            if each.name == "FROM":
                stage = self._base(each.text.partition(" AS ")[2] or "last")
            elif each.name == "ARG":
                name, _, value = each.text.partition("=")
                variables[name] = value
            elif each.name == "ENV":
                known = {**variables, **stage.environ}
                pairs = (word.split("=", 1) for word in shlex.split(each.text))
                values = {k: string.Template(v).substitute(known) for k, v in pairs}
                stage.environ.update(values)
            elif each.name == "WORKDIR":
                stage.folder = each.text
                self._run(["mkdir", "-p", f"{stage.root}{each.text}"])
            elif each.name == "RUN":
                self._run_in(stage, each.text, variables)
            elif each.name == "COPY":
                self._copy(stage, each)
            else:
                assert each.name in CONFIGURATION, f"unknown instruction {each.name}"
                stage.configuration[each.name] = each
        return stage

    def _base(self, name: str) -> Stage:
        root, layer = self._folder / name, self._folder / f"{name}.layer"
        arguments = (str(root), str(layer), sys.base_prefix, str(self._hidden))
        self._run(["sh", "-c", BASE, "sh", *arguments])
        if self._wheels:
            self._run(["mount", "--bind", str(self._wheels), f"{root}/mnt"])
        self._stages[name] = Stage(root)
        return self._stages[name]

    def _run_in(self, stage: Stage, command: str, variables: dict[str, str]) -> None:
        """Execute RUN with the network and the package settings of this machine."""
        of_machine = re.compile(r"(PIP_\w+|\w+_proxy|SSL_CERT_FILE)$", re.IGNORECASE)
        environ = {name: text for name, text in os.environ.items() if of_machine.match(name)}
        environ |= {"HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
        if self._wheels:
            # pip switches its options "no-…" on with a false value.
            environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/mnt", "PIP_NO_COMPILE": "0"}
        environ |= {**variables, **stage.environ}
        script = f"cd {shlex.quote(stage.folder)} && {command}"
        self._run(["chroot", str(stage.root), "/bin/sh", "-c", script], environ)

    def _copy(self, stage: Stage, each: Instruction) -> None:
        *sources, target = each.words
        source_root = self._context
        if "from" in each.options:
            source_root = self._stages[each.options["from"]].root
        target = str(Path(stage.folder, target))
        for source in sources:
            origin = f"{source_root}/{source.lstrip('/')}"
            self._run(["sh", "-c", COPY, "sh", origin, f"{stage.root}{target}"])

    def _run(self, command: list[str], environ: dict[str, str] | None = None) -> None:
        done = subprocess.run(
            self.inside(*command),
            env=environ,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=STEP_DEADLINE_S,
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout}"


#: Copies a file into a folder, or the contents of a folder.
COPY = """
set -eu
if [ -d "$1" ]; then mkdir -p "$2"; exec cp -a "$1/." "$2/"; fi
exec cp -a "$1" "$2/"
"""
