"""The options -b and -c: one broker, or the brokers of a cluster."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from core_broker.mqadmin.command import text

F = TypeVar("F", bound=Callable[..., Any])


def broker_or_cluster(
    broker_help: str, cluster_help: str, *, cluster_option: str = "--clusterName"
) -> Callable[[F], F]:
    """Add both options as parameters broker_addr and cluster_name.

    A command line with both options or without one of them ends with a UsageError.
    """

    def wrap(function: F) -> F:
        @wraps(function)
        async def checked(*arguments: Any, **options: Any) -> None:
            options_set = [name for name in ("broker_addr", "cluster_name") if options[name]]
            if len(options_set) != 1:
                raise click.UsageError(
                    f"Give one of -b/--brokerAddr and -c/{cluster_option}, not "
                    f"{'both' if options_set else 'none'}.",
                    click.get_current_context(silent=True),
                )
            await function(*arguments, **options)

        cluster = text("-c", cluster_option, help=cluster_help)
        broker = text("-b", "--brokerAddr", help=broker_help)
        return broker(cluster(checked))  # type: ignore[return-value]

    return wrap
