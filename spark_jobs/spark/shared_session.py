"""One Spark session for many jobs, one job at a time.

The session starts with the first job that needs Spark. Java and the Python workers stay ready for
the next job.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from spark_jobs.spark.session import (
    SETTINGS,
    SHORT_RUN,
    SessionSettings,
    SparkLostError,
    start_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP_NAME: Final = "gantry jobs"


class SharedSession:
    """The session. `lend` and `stop` belong to one thread; other methods may run in any thread."""

    def __init__(self, settings: SessionSettings) -> None:
        self.settings = settings
        #: End of the last loan, or the creation of this object; seconds of `time.monotonic`.
        self.used_s = time.monotonic()
        #: Number of loans.
        self.loans = 0
        self._session: SparkSession | None = None

    @property
    def is_running(self) -> bool:
        return self._session is not None

    @property
    def is_lost(self) -> bool:
        """Whether Spark has ended: its Java process, or its context."""
        from py4j.protocol import Py4JError

        if self._session is None:
            return False
        context = self._session.sparkContext
        java = context._gateway
        try:
            return (
                java is None or java.proc.poll() is not None or bool(context._jsc.sc().isStopped())
            )
        except (Py4JError, OSError, AttributeError):  # AttributeError: stopped in this process
            return True

    @contextmanager
    def lend(self, is_short: bool) -> "Iterator[SparkSession]":
        """The session for a job; `is_short` selects the settings for a run of seconds.

        Raises SparkUnavailableError when Spark does not start, and SparkLostError when Spark ends
        before the block; no other job can use the object then.
        """
        from py4j.protocol import Py4JNetworkError

        session = self._session or self._start()
        try:
            for key, value in SHORT_RUN.items():
                setting = value if is_short else SETTINGS[key]
                session.conf.set(key, self.settings.spark.get(key, setting))
            yield session
            session.catalog.clearCache()
        except (Py4JNetworkError, ConnectionError) as error:
            raise SparkLostError.during_work() from error
        finally:
            self.used_s = time.monotonic()
            self.loans += 1

    def cancel_work(self) -> None:
        """Cancel the running work of Spark; without work, nothing happens."""
        from py4j.protocol import Py4JError

        with suppress(Py4JError, OSError, AttributeError):
            if self._session is not None:
                self._session.sparkContext.cancelAllJobs()

    def stop(self) -> None:
        """End Spark."""
        from py4j.protocol import Py4JError

        with suppress(Py4JError, OSError):
            if self._session is not None:
                self._session.stop()

    def _start(self) -> "SparkSession":
        self._session = start_session(
            APP_NAME,
            run_dir=self.settings.run_dir,
            master=self.settings.master,
            settings=self.settings.spark,
        )
        return self._session
