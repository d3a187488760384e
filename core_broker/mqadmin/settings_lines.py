"""Settings of brokers and name servers as lines, in the layout of RocketMQ's mqadmin."""

from collections.abc import Iterator, Mapping


def settings_lines(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield one line for each key, in alphabetical order."""
    for entry in sorted(settings.items()):
        yield "%-50s=  %s" % entry  # noqa: UP031 - Java's layout
