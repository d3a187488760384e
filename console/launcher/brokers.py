"""Brokers with messages of their own: `up --brokers 4`, one per core.

name server ─▶ broker, broker-b, broker-c, broker-d

A broker uses one core for its event loop. All brokers have the settings of conf/broker.conf, and
register at the same name server, so clients spread their messages over the queues of all. The
first broker has the store and the name of a start without the option. The name of a further broker
is also the name of its folder below brokers/, and stays the same at every start.
"""

import string
from collections.abc import Mapping
from pathlib import Path

from console.launcher.errors import EXIT_USAGE, StartError
from console.launcher.options import Options
from core_broker.config.property_files import parse_properties
from core_broker.config.settings import ENVIRONMENT_PREFIX, plain_name

NAME_VARIABLE = "ROCKETMQ_BROKER_NAME"
#: Settings of files that a broker writes, as plain names; `up` replaces OWN_PATH for each broker.
SHARED_PATHS = tuple(map(plain_name, ("storePath", "accessLogPath")))
OWN_PATH = plain_name("storePathRootDir")


def broker_folder(home: Path, name: str) -> Path:
    """Return the folder of a further broker."""
    return home / "brokers" / name


def further_names(brokers: int) -> tuple[str, ...]:
    """Return the names of the brokers besides the first one."""
    return tuple(f"broker-{letter}" for letter in string.ascii_lowercase[1:brokers])


def count_brokers(options: Options, environ: Mapping[str, str]) -> int:
    """Return the number of brokers to start.

    Raises StartError for a start that would leave messages of an earlier start unread, or would
    give two brokers one name or the same files.
    """
    earlier = 1 + max(
        (
            number
            for number, letter in enumerate(string.ascii_lowercase)
            if broker_folder(options.home, f"broker-{letter}").exists()
        ),
        default=0,
    )
    brokers = earlier if options.brokers is None else options.brokers
    if brokers < earlier:
        unused = broker_folder(options.home, further_names(earlier)[-1])
        raise StartError(
            f"{options.home} was started with --brokers {earlier}: {unused} has messages. Give "
            f"--brokers {earlier}, or move the folder away after its messages are consumed.",
            EXIT_USAGE,
        )
    if brokers > 1 and options.replicas > 1:
        raise StartError(
            "--brokers and --replicas do not work together: --replicas copies one broker.",
            EXIT_USAGE,
        )
    conf = options.home / "conf" / "broker.conf"
    settings = _settings(conf)
    _require_own_name(conf, settings, brokers, environ)
    if max(brokers, options.replicas) > 1:
        _require_own_files(conf, settings, environ)
    return brokers


def _settings(conf: Path) -> dict[str, str]:
    try:
        entries = parse_properties(conf.read_text(encoding="utf-8", errors="replace"))
    except OSError:  # the broker reports the file
        return {}
    return {each.key: each.value for each in entries}


def _require_own_files(conf: Path, settings: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Refuse paths that all brokers would share: the lock of a store is in storePathRootDir."""
    variables = {
        name: value for name, value in environ.items() if name.startswith(ENVIRONMENT_PREFIX)
    }
    for place, values in ((f"in {conf}", settings), ("in the environment", variables)):
        for key, value in values.items():
            plain = plain_name(key.removeprefix(ENVIRONMENT_PREFIX))
            if value and plain.startswith(SHARED_PATHS) and plain != OWN_PATH:
                raise StartError(
                    f"{key} {place} gives all brokers and replicas the same files, and they would "
                    f"destroy them. Remove {key}, or start one broker.",
                    EXIT_USAGE,
                )


def _require_own_name(
    conf: Path, settings: Mapping[str, str], brokers: int, environ: Mapping[str, str]
) -> None:
    name = environ.get(NAME_VARIABLE) or settings.get("brokerName", "")
    if name in further_names(brokers):
        raise StartError(
            f"The first broker is named {name} ({NAME_VARIABLE}, or brokerName in {conf}), and a "
            "broker of --brokers has the same name. Choose another name for the first broker.",
            EXIT_USAGE,
        )
