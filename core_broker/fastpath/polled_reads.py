"""The event loop's side of the kernel's poller (kernel/poller.py)."""

import asyncio
import logging

from core_broker.kernel.fast_path import FastPath
from core_broker.kernel.fast_protocol import FastProtocol
from core_broker.kernel.poller import Poller
from core_broker.remoting.iteration import Iteration

log = logging.getLogger(__name__)


class PolledReads:
    """Created with the server; polls from the first connection on, until the server has stopped.

    Where the system or the event loop cannot watch an epoll instance, the event loop reads.
    """

    def __init__(self, kernel: FastPath) -> None:
        self._kernel = kernel
        self._poller: Poller | None = None
        self._is_possible = True

    @property
    def connections(self) -> int:
        """Number of the connections that the poller reads."""
        return 0 if self._poller is None else int(self._poller.connections)

    def begin(self, protocol: FastProtocol, iteration: Iteration) -> bool:
        """Read from a connection; False when the event loop must read."""
        if self._poller is None:
            self._start(iteration)
        return self._poller is not None and self._poller.add(protocol)

    def end(self, protocol: FastProtocol) -> bool:
        """Read no more from a connection; False when the poller does not read from it."""
        return self._poller is not None and self._poller.remove(protocol)

    def stop(self) -> None:
        """Stop polling; the last connection is gone."""
        if self._poller is not None:
            asyncio.get_running_loop().remove_reader(self._poller.fileno())
            self._poller = None

    def _start(self, iteration: Iteration) -> None:
        if not self._is_possible:
            return
        try:
            poller = Poller(self._kernel, iteration, self)
            asyncio.get_running_loop().add_reader(poller.fileno(), poller.run)
        except (OSError, NotImplementedError) as error:
            self._is_possible = False
            log.warning("the event loop reads the connections, not the kernel: %s", error)
            return
        self._poller = poller

    # Called by the poller

    def ended(self, protocol: asyncio.BufferedProtocol) -> None:
        """The peer sends no more."""
        protocol.eof_received()

    def failed(self, protocol: FastProtocol, error: BaseException) -> None:
        """Close a connection whose socket or handler has failed, as asyncio's transports do."""
        if not isinstance(error, OSError):
            asyncio.get_running_loop().call_exception_handler(
                {
                    "message": "an error in the handling of a read",
                    "exception": error,
                    "protocol": protocol,
                }
            )
        protocol.connection.abort(str(error))
