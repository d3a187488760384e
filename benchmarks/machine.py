"""Facts about the machine of a measurement, recorded with every result."""

import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import psutil


def facts(data_folder: Path) -> dict[str, object]:
    """The machine, the interpreter, the file system and the state of the source."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "memory_mb": psutil.virtual_memory().total // 2**20,
        "kernel": platform.release(),
        "file_system": _file_system(data_folder),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in ("msgspec", "uvloop")},
        "commit": _commit(),
        "load_1min_before": os.getloadavg()[0],
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(folder: Path) -> str:
    best, kind = "", "unknown"
    for partition in psutil.disk_partitions(all=True):
        mount = partition.mountpoint
        if folder.is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, partition.fstype
    return kind


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
