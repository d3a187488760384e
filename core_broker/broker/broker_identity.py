"""brokerIdentity: the id that the controllers assigned to this broker.

    brokerIdentity        cluster#brokerName#id
    brokerIdentity-temp   cluster#brokerName#id#host:port;milliseconds

The second file exists from before the application for an id (code 1013) until the first file is on
the disk. Its last field is the check code by which the controllers recognize a repeated
application. Compatible with RocketMQ's BrokerMetadata and TempBrokerMetadata, which end without a
line feed.
"""

from pathlib import Path
from typing import NamedTuple

from core_broker.config import BrokerConfig
from core_broker.durable_files import replace_file
from core_broker.errors import SettingProblem, SettingsError

_SEPARATOR = "#"


class Application(NamedTuple):
    """An id that this broker applies for."""

    broker_id: int
    check_code: str


class BrokerIdentity:
    """The two files. All calls wait for the disk."""

    def __init__(self, config: BrokerConfig) -> None:
        """Raises SettingsError for names that the files cannot hold."""
        root = Path(config.store_path_root_dir)
        self._path = Path(config.store_path_broker_identity or root / "brokerIdentity")
        self._temp_path = self._path.with_name(self._path.name + "-temp")
        self._names = (config.broker_cluster_name, config.broker_name)
        for key, name in zip(("brokerClusterName", "brokerName"), self._names, strict=True):
            if _SEPARATOR in name:
                expected = f"a name without {_SEPARATOR} with enableControllerMode=true"
                raise SettingsError([SettingProblem(key, expected, name)])

    def load(self) -> int | None:
        """Return the id; None without the file.

        Raises SettingsError for the file of another broker, and for an unreadable one: a broker
        with a wrong id would count as another broker.
        """
        fields = self._read(self._path)
        if not fields:
            return None
        if len(fields) != 3 or fields[:2] != list(self._names) or not _is_id(fields[2]):
            expected = f"the identity of {_SEPARATOR.join(self._names)}"
            found = _SEPARATOR.join(fields)
            raise SettingsError([SettingProblem("storePathBrokerIdentity", expected, found)])
        return int(fields[2])

    def load_application(self) -> Application | None:
        """Return the unfinished application; None without a usable one."""
        fields = self._read(self._temp_path)
        if len(fields) != 4 or fields[:2] != list(self._names) or not _is_id(fields[2]):
            return None
        return Application(int(fields[2]), fields[3])

    def save_application(self, application: Application) -> None:
        """Write the application before it is sent."""
        self._write(self._temp_path, str(application.broker_id), application.check_code)

    def drop_application(self) -> None:
        """Forget a refused application."""
        self._temp_path.unlink(missing_ok=True)

    def save(self, broker_id: int) -> None:
        """Write the accepted id, and end the application."""
        self._write(self._path, str(broker_id))
        self.drop_application()

    def _read(self, path: Path) -> list[str]:
        try:
            text = path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return []
        except UnicodeDecodeError:
            text = "unreadable"
        return text.split(_SEPARATOR) if text else []

    def _write(self, path: Path, *fields: str) -> None:
        replace_file(path, [_SEPARATOR.join((*self._names, *fields)).encode()])


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < 2**63
