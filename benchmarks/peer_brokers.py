"""The peers of `make bench-peers`: how each broker is installed, tuned and started.

Each peer is tuned as its own documentation advises, and `Peer.tuning` says how. Advice that trades
acknowledged messages for speed (RocketMQ's transient store pool) is a peer of its own, beside the
broker with the guarantees of Gantry.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.java_brokers import JVM, running_java, running_java_slave
from benchmarks.processes import Cluster, running, running_slave
from benchmarks.rust_brokers import running_rust
from core_broker.config import java_key, property_text
from tests.compat import installing

OURS: Final = "gantry"
PLAIN: Final = "plain"
JAVA_5: Final = "java55"
JAVA_5_POOL: Final = "java55-pool"
JAVA_4: Final = "java49"
RUST: Final = "rust10"
#: Peers in the order of preference as the reference of ratios and of the offered load.
REFERENCES: Final = (JAVA_5, JAVA_4, RUST)
JAVA_VERSIONS: Final = {JAVA_5: "5.5.0", JAVA_5_POOL: "5.5.0", JAVA_4: "4.9.7"}

#: ASYNC_FLUSH: RocketMQ's operations guide, "performance tuning", advises the spin lock.
ASYNC_TUNING: Final[dict[str, Any]] = {
    "use_reentrant_lock_when_put_message": False,
    "transfer_msg_by_heap": False,
}
#: SYNC_FLUSH: the same guide advises the reentrant lock and more send threads.
SYNC_TUNING: Final[dict[str, Any]] = {
    "use_reentrant_lock_when_put_message": True,
    "transfer_msg_by_heap": False,
    "send_message_thread_pool_nums": 16,
}
#: The same guide advises the pool for ASYNC_FLUSH. The default of five buffers takes 5 GiB; with
#: two buffers, the broker refuses sends during the preparation of the next segment.
POOL: Final[dict[str, Any]] = {"transient_store_pool_enable": True, "transient_store_pool_size": 3}
POOL_ROWS: Final = frozenset(("send-64x1", "send-1x64", "batch-32", "offered", "kills"))


class Start(Protocol):
    """Starts name server and broker with their data in a folder."""

    def __call__(
        self, folder: Path, conf: Mapping[str, str] | None = None, **settings: Any
    ) -> AbstractContextManager[Cluster]:
        """`conf` are files of the broker's conf folder, by name."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One broker of the comparison."""

    title: str
    #: Raises CannotInstall with the reason.
    install: Callable[[], object]
    start: Start
    #: Settings that differ from the defaults, and the source of the advice.
    tuning: str
    #: The broker compiles its code at run time, so it gets a warm-up.
    is_jvm: bool = False
    #: The rows of the peer; None: all.
    rows: frozenset[str] | None = None
    #: Gives the broker of a cluster a slave, with its data in a folder.
    start_slave: Callable[[Path, Cluster], AbstractContextManager[None]] | None = None

    def takes_part(self, row: str) -> bool:
        """True when the row is measured for the peer."""
        return self.rows is None or row in self.rows


def _gantry(
    folder: Path, conf: Mapping[str, str] | None = None, **settings: Any
) -> AbstractContextManager[Cluster]:
    lines = (f"{java_key(name)}={property_text(value)}\n" for name, value in settings.items())
    return running(folder, "".join(lines))


def _java(
    version: str,
    more: Mapping[str, Any],
    folder: Path,
    conf: Mapping[str, str] | None = None,
    **settings: Any,
) -> AbstractContextManager[Cluster]:
    is_sync = settings.get("flush_disk_type") == "SYNC_FLUSH"
    tuning = SYNC_TUNING if is_sync else ASYNC_TUNING
    return running_java(version, folder, conf, **{**tuning, **more, **settings})


def _install_java(version: str) -> None:
    for program in ("namesrv", "broker"):
        installing.java_program_classpath(program, version)


def _java_peer(name: str, tuning: str = "", **more: Any) -> Peer:
    version = JAVA_VERSIONS[name]
    return Peer(
        f"Java {version}" + (" with pool" if more else ""),
        partial(_install_java, version),
        partial(_java, version, more),
        tuning,
        is_jvm=True,
        rows=POOL_ROWS if more else None,
        start_slave=partial(running_java_slave, version, **ASYNC_TUNING),
    )


_JAVA_TUNING: Final = (
    f"the options of RocketMQ's start script and JVM guide ({' '.join(JVM)}; no pre-touch), and"
    " the operations guide's advice on performance: spin lock with ASYNC_FLUSH, reentrant lock and"
    " 16 send threads with SYNC_FLUSH, `transferMsgByHeap=false`."
)

PEERS: Final[dict[str, Peer]] = {
    OURS: Peer("Gantry", lambda: None, _gantry, "default settings.", start_slave=running_slave),
    PLAIN: Peer(
        "Gantry without kernel",
        lambda: None,
        partial(_gantry, kernel_enable=False),
        "default settings and `kernelEnable=false`.",
        rows=frozenset(("starts", "send-64x1")),
    ),
    JAVA_5: _java_peer(JAVA_5, _JAVA_TUNING),
    JAVA_5_POOL: _java_peer(
        JAVA_5_POOL,
        "the same, and the same guide's advice for ASYNC_FLUSH: `transientStorePoolEnable=true`"
        " (three buffers instead of five). Acknowledged messages then wait up to 200 ms in the"
        " memory of the process.",
        **POOL,
    ),
    JAVA_4: _java_peer(JAVA_4, "as Java 5.5.0."),
    RUST: Peer(
        "rocketmq-rust 1.0.0",
        installing.rust_brokers,
        running_rust,
        "release build; the values of its `distribution/config/broker/broker.toml` for timers,"
        " compaction and `enableAsyncReput`, log level warn. Its documentation has no advice on"
        " performance.",
        # Without signed and tls: TLS is a build feature, and accounts need extra files.
        rows=frozenset(
            (
                *("starts", "send-64x1", "send-1x64", "batch-32", "pull-32", "offered", "mixed"),
                *("java-client", "memory", "sync-64x1", "kills"),
            )
        ),
    ),
}
