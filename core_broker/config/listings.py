"""Print-outs of settings: every key (-p), the important keys (-m), the changed keys (--check)."""

from collections.abc import Mapping

from core_broker.config.options import Options
from core_broker.config.settings import Settings, rules_of
from core_broker.config.unsupported import REFUSED_VALUES
from core_broker.config.unused import KEYS_WITHOUT_EFFECT


def listing(config: Settings, options: Options, sources: Mapping[str, str]) -> str | None:
    """Return the print-out that the options ask for; None for a start of the process."""
    if options.prints_all:
        return config.shown_properties() + _comments(config)
    if options.prints_important:
        important = {name for name, field in config.keys().items() if rules_of(field).important}
        return "".join(
            f"{name}={value}\n" for name, value in config.shown_items() if name in important
        )
    if options.checks:
        lines = [
            f"{name}={value}  ({sources[name]})"
            for name, value in config.shown_items()
            if name in sources
        ]
        return "\n".join([*lines, "The settings are in order.", ""])
    return None


def _comments(config: Settings) -> str:
    """Return the keys without effect and the refused values, as comments of a settings file."""
    no_effect = {**config.no_effect_keys(), **KEYS_WITHOUT_EFFECT}
    lines = ["# Keys of RocketMQ that are accepted and have no effect here:"]
    lines += [f"# {key}: {reason}" for key, reason in no_effect.items()]
    lines.append("# Values that are refused:")
    lines += [f"# {key}={value}: use {advice}" for (key, value), advice in REFUSED_VALUES.items()]
    return "\n".join(lines) + "\n"
