"""The home folder of Gantry: layout, lock, and the initial settings file.

conf/broker.conf            the broker's settings, for the operator to edit
conf/tools.yml, conf/tls/   keys and certificates of a secured folder, see `access.py`
store/                      the broker's message store
brokers/                    stores of further brokers: --brokers
replicas/, controllers/     stores of further replicas, logs of controllers: --replicas
namesrv/                    the name server's key-value settings
valkey/                     the embedded Valkey's data
lake/                       output of the trace jobs
history/                    metrics of the last days, a file per cluster; not with PostgreSQL
logs/                       one bounded log per program
run/                        lock, stamp of the set-up step, Valkey's settings
console.sqlite3, secret_key   database and secret key of the console
console.sqlite3-reserve       space for SQLite on a full disk
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from console.launcher.errors import EXIT_USAGE, StartError

#: Permission bits removed from new files, of `up` and of all programs: those of other users.
PRIVATE_UMASK = 0o077
FOLDERS = ("conf", "store", "namesrv", "valkey", "lake", "logs", "run")
LOCK_NAME = "run/up.lock"

BROKER_CONF = """\
# Settings of the broker: RocketMQ's keys, one `key=value` a line. `python -m core_broker -p` lists
# them all. `up` itself sets listenPort, httpPort, bindAddress, brokerIP1, namesrvAddr and
# storePathRootDir, and brokerName of further brokers; options, not this file, change those.
brokerClusterName=DefaultCluster
brokerName=broker-a
flushDiskType=ASYNC_FLUSH
autoCreateTopicEnable=true
traceTopicEnable=true
# By default, a broker refuses sends that waited 200 ms (SYSTEM_BUSY). With all programs on one
# machine, the start of a Spark job delays sends longer.
waitTimeMillsInSendQueue=2000
"""


@contextmanager
def claimed_home(home: Path) -> Iterator[Path]:
    """Create the folder and hold the lock; raises StartError when another `up` holds the lock.

    The kernel releases the lock at the exit of this process, also after a crash. Files made inside,
    also by programs started meanwhile, belong to the user alone: the database has sessions.
    """
    umask = os.umask(PRIVATE_UMASK)
    try:
        with _locked(home):
            yield home
    finally:
        os.umask(umask)


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    try:
        is_own = not home.exists() or (home / LOCK_NAME).exists() or not any(home.iterdir())
        for name in FOLDERS:
            (home / name).mkdir(parents=True, exist_ok=True)
        if is_own:  # never close a folder that other programs use, such as /tmp
            home.chmod(0o700)
        lock = os.open(home / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as problem:
        raise StartError(
            f"The home folder {home} cannot be used: {problem.strerror}. "
            "Choose another with --home or GANTRY_HOME.",
            EXIT_USAGE,
        ) from None
    try:
        take_lock(lock, home)
        write_broker_conf(home)
        yield
    finally:
        os.close(lock)


def take_lock(lock: int, home: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        raise StartError(
            f"Another Gantry already runs on {home} (process {owner or 'unknown'}). "
            "Stop it first, or give this one a folder of its own with --home.",
            EXIT_USAGE,
        ) from None
    with suppress(OSError):  # on a full disk the lock holds without its owner's number
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)


def write_broker_conf(home: Path) -> None:
    """Write the initial settings file; keep an existing file, which belongs to the operator."""
    path = home / "conf" / "broker.conf"
    if path.exists():
        return
    try:
        path.write_text(BROKER_CONF, encoding="utf-8")
    except OSError as problem:
        path.unlink(missing_ok=True)
        raise StartError(f"{path} cannot be written: {problem.strerror}.", EXIT_USAGE) from None
