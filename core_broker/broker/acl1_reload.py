"""ACL 1.0 in a running broker: puts the rules of the files in force, and again after changes."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core_broker.auth.acl1.demands import Mode
from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.files import DEFAULT_FILE, POLL_INTERVAL_MS, Acl1Files
from core_broker.auth.gate import Gate
from core_broker.config import BrokerConfig
from core_broker.errors import SettingProblem, SettingsError

log = logging.getLogger(__name__)


class Acl1Reload:
    """Owns the files of ACL 1.0; only the event loop's thread gives rules to the gate."""

    def __init__(self, config: BrokerConfig, gate: Gate, now_ms: Callable[[], int]) -> None:
        """Raises SettingsError when no home folder is set."""
        if not config.rocketmq_home:
            expected = (
                f"the folder with {DEFAULT_FILE}, which aclEnable=true needs; the environment's "
                "ROCKETMQ_HOME is the default"
            )
            raise SettingsError([SettingProblem("rocketmqHome", f"expected {expected}", "")])
        mode = Mode.JAVA if config.acl_java_checks else Mode.STRICT
        self.files = Acl1Files(Path(config.rocketmq_home), mode)
        self._gate = gate
        self._now_ms = now_ms

    async def start(self) -> None:
        """Put the first rules in force. Raises SettingsError for broken files."""
        try:
            rules = await asyncio.to_thread(self.files.start, self._now_ms())
        except (RulesError, OSError) as error:
            raise SettingsError(
                [SettingProblem("aclEnable", f"access control cannot start: {error}", "true")]
            ) from None
        self._gate.use_acl1(rules)

    async def run(self) -> None:
        """Poll the files until cancelled."""
        while True:
            await asyncio.sleep(POLL_INTERVAL_MS / 1000)
            if await asyncio.to_thread(self.files.poll, self._now_ms()) is not None:
                # A command may have changed the files since; its rules are the latest.
                self._gate.use_acl1(self.files.rules)

    def problem(self) -> str:
        """Why changed files are not in force, for /readyz; "" when they are."""
        return self.files.problem

    def varz(self) -> dict[str, Any]:
        """Return the state for /varz, without secrets."""
        rules = self.files.rules
        return {
            "generation": rules.generation,
            "checks": rules.mode.value,
            "accounts": len(rules.accounts),
            "white_list": [pattern.text for pattern in rules.white_list],
            "files": {path: version.counter for path, version in self.files.versions.items()},
            "problem": self.files.problem,
            "failed_reloads": self.files.failures,
            "warnings": list(self.files.warnings),
        }
