"""Loading of settings: defaults < NAMESRV_ADDR < file (-c) < ROCKETMQ_<KEY> < options.

NAMESRV_ADDR stands below the file because RocketMQ treats the variable as a default. All problems
are collected and reported at once.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from core_broker.config.assignments import Assignment
from core_broker.config.conversion import typed_values
from core_broker.config.listings import listing
from core_broker.config.namesrv import NamesrvConfig
from core_broker.config.options import parse_options
from core_broker.config.settings import Settings
from core_broker.config.sources import from_defaults, from_environment, from_file
from core_broker.errors import SettingProblem, SettingsError

# A program imports its own settings only.
if TYPE_CHECKING:
    from core_broker.config.broker import BrokerConfig
    from core_broker.config.controller import ControllerConfig

C = TypeVar("C", bound=Settings)


@dataclass(frozen=True, slots=True)
class Loaded(Generic[C]):
    """The settings in force and their sources.

    `sources` has an entry for every key that a source sets. `listing` is set when the command line
    requested a print-out (-p, -m, --check) instead of a start.
    """

    config: C
    file: Path | None
    sources: Mapping[str, str]
    warnings: tuple[str, ...]
    listing: str | None


def load_broker_config(
    argv: Sequence[str], environ: Mapping[str, str] = os.environ
) -> "Loaded[BrokerConfig]":
    """Return the broker's settings; raises SettingsError with every problem found.

    `-h` prints the help and raises SystemExit(0), a wrong option SystemExit(2).
    """
    from core_broker.config.broker import BrokerConfig

    loaded = _load(BrokerConfig, argv, environ, program="mqbroker")
    broker_id = loaded.config.broker_id
    if loaded.config.enable_controller_mode:
        if not loaded.config.controller_addr:
            expected = "host:port of each controller, separated by ; with enableControllerMode=true"
            raise SettingsError([SettingProblem("controllerAddr", expected, "")])
        # The controllers choose role and id; until then the broker accepts nothing.
        return replace(loaded, config=replace(loaded.config, broker_role="SLAVE"))
    if loaded.config.enable_d_leger_commit_log:
        # The group chooses role and id; until then the broker accepts nothing.
        return replace(loaded, config=replace(loaded.config, broker_role="SLAVE"))
    if loaded.config.broker_role == "SLAVE":
        if broker_id == 0:
            raise SettingsError([_slave_without_id(loaded.sources)])
    elif broker_id != 0:
        # RocketMQ forces 0 on masters, too.
        warning = f"brokerId={broker_id} is ignored: a master has the id 0"
        config = replace(loaded.config, broker_id=0)
        return replace(loaded, config=config, warnings=(*loaded.warnings, warning))
    return loaded


def _slave_without_id(sources: Mapping[str, str]) -> SettingProblem:
    expected = "a number above 0 with brokerRole=SLAVE, different for each slave of a brokerName"
    return SettingProblem("brokerId", expected, "0", sources.get("brokerId"))


def load_namesrv_config(
    argv: Sequence[str], environ: Mapping[str, str] = os.environ
) -> Loaded[NamesrvConfig]:
    """Return the name server's settings, under the same contract as `load_broker_config`."""
    return _updating_file(_load(NamesrvConfig, argv, environ, program="mqnamesrv"))


def load_controller_config(
    argv: Sequence[str], environ: Mapping[str, str] = os.environ
) -> "Loaded[ControllerConfig]":
    """Return the controller's settings, under the same contract as `load_broker_config`."""
    from core_broker.config.controller import ControllerConfig

    return _updating_file(_load(ControllerConfig, argv, environ, program="mqcontroller"))


F = TypeVar("F", NamesrvConfig, "ControllerConfig")


def _updating_file(loaded: Loaded[F]) -> Loaded[F]:
    """Let updates (codes 318 and 1009) write the settings file of the start, as in RocketMQ."""
    if loaded.file is not None and "configStorePath" not in loaded.sources:
        config = replace(loaded.config, config_store_path=str(loaded.file))
        return replace(loaded, config=config)
    return loaded


def _load(
    kind: type[C], argv: Sequence[str], environ: Mapping[str, str], program: str
) -> Loaded[C]:
    options = parse_options(program, argv)
    problems: list[SettingProblem] = []
    warnings: list[str] = []
    file = Path(options.settings_file).absolute() if options.settings_file else None
    assignments = list(from_defaults(kind, environ))
    if file is not None:
        assignments += from_file(kind, file, problems, warnings)
    assignments += from_environment(kind, environ, warnings)
    if options.namesrv_addr is not None and "namesrvAddr" in kind.keys():  # noqa: SIM118
        assignments.append(Assignment("namesrvAddr", options.namesrv_addr, "option -n"))
    values = typed_values(kind, assignments, problems)
    if problems:
        raise SettingsError(problems)
    config = kind(**values)
    sources = {assignment.key: assignment.location for assignment in assignments}
    return Loaded(config, file, sources, tuple(warnings), listing(config, options, sources))
