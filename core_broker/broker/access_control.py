"""Access control of a broker: the gate with its observers, made from the settings.

The gate is closed until rules are loaded, and exists only with aclEnable, authenticationEnabled or
authorizationEnabled: without them no request asks a gate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_broker.auth.admissions import RESOURCES, Admissions
from core_broker.auth.audit import AuditTrail
from core_broker.auth.back_off import BackOff
from core_broker.auth.gate import Gate, Observer
from core_broker.auth.refusals import RefusalLog
from core_broker.auth.replays import ReplayWindow
from core_broker.broker.audit_log import AuditLog
from core_broker.config import BrokerConfig
from core_broker.remoting.codes import RequestCode as Code
from core_broker.store.io_threads import SerialExecutor

if TYPE_CHECKING:
    from core_broker.broker.acl1_reload import Acl1Reload

_SENDS = frozenset({Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE})

#: The audit file, below storePathRootDir, unless accessLogPath names another.
AUDIT_FILE = "audit/access.log"


@dataclass(frozen=True, slots=True)
class AccessControl:
    """The gate of a broker, and what its observers have counted."""

    gate: Gate
    refusals: RefusalLog
    audit: AuditLog
    #: The rules of ACL 1.0; None with aclEnable=false.
    acl1: "Acl1Reload | None" = None

    def varz(self) -> dict[str, Any]:
        """Return the counters for /varz."""
        return {
            "generations": list(self.gate.generations),
            "refused": dict(self.refusals.counts),
            "audit_log": str(self.audit.path),
            "audit_lines_lost": self.audit.lost,
            "acl1": self.acl1.varz() if self.acl1 else None,
        }


def access_control(
    config: BrokerConfig, now_ms: Callable[[], int], executor: SerialExecutor
) -> AccessControl | None:
    """Make the gate of a broker, closed until rules come; None without access control."""
    if not (config.acl_enable or config.authentication_enabled or config.authorization_enabled):
        return None
    path = config.access_log_path or Path(config.store_path_root_dir) / AUDIT_FILE
    audit = AuditLog(
        Path(path), config.max_access_log_file_size, config.max_access_log_file_num, executor
    )
    refusals = RefusalLog()
    observers: list[Observer] = [refusals, AuditTrail(audit.write, now_ms)]
    if config.max_access_failures:
        observers.append(BackOff(config.max_access_failures, config.max_access_back_off_seconds))
    if config.access_replay_window_seconds:
        observers.append(ReplayWindow(config.access_replay_window_seconds, now_ms))
    # The replay window must see every send.
    codes = RESOURCES.keys() - _SENDS if config.access_replay_window_seconds else RESOURCES.keys()
    gate = Gate(tuple(observers), Admissions(codes))
    return AccessControl(gate, refusals, audit, _acl1(config, gate, now_ms))


def _acl1(config: BrokerConfig, gate: Gate, now_ms: Callable[[], int]) -> "Acl1Reload | None":
    if not config.acl_enable:
        return None
    # The YAML library is read only where it is used: a tenth of a second of every start.
    from core_broker.broker.acl1_reload import Acl1Reload

    return Acl1Reload(config, gate, now_ms)
