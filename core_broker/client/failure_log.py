"""Log lines for repeated failures of a background task."""

import logging


class FailureLog:
    """Logs a failure once, until a different failure or a success."""

    def __init__(self, log: logging.Logger, name: str) -> None:
        self._log = log
        self._name = name
        self._last_failure = ""

    def failed(self, failure: str) -> None:
        """Log a failure as a warning, unless the failure equals the last one."""
        if failure != self._last_failure:
            self._log.warning("%s: %s", self._name, failure)
        self._last_failure = failure

    def succeeded(self) -> None:
        """Log the next failure in any case."""
        self._last_failure = ""
