"""The fast path of a broker's server: the way around the full handling of common requests.

    compiled fast path    core_broker/kernel, compiled by Cython: takes common sends, pulls, offset
                          commits and repeated heartbeats straight from the read buffer
    slow path (complete)  remoting, then core_broker/processors: handles every request, and alone
                          is a complete broker

The fast path takes a request whole or leaves the request untouched to the slow path. Both paths
store and answer the same bytes (tests/unit/kernel). Without the compiled kernel all requests take
the slow path.

    sends.py, pulls.py, heartbeats.py   what the fast path asks of the broker, once per iteration of
                                        the event loop, and hands over at the iteration's end
    compiled.py                         the compiled fast path of one server
    polled_reads.py                     the kernel's reads of the connections without TLS
    lent_transport.py                   the transport of a connection whose socket the kernel uses
    writer_thread.py                    a second thread for sending many long answers
"""

import importlib.util


def has_kernel() -> bool:
    """Return True when the kernel is compiled and not switched off by GANTRY_KERNEL=off."""
    return _HAS_KERNEL


def _can_import_kernel() -> bool:
    try:
        return importlib.util.find_spec("core_broker.kernel.fast_path") is not None
    except ImportError:
        return False


_HAS_KERNEL = _can_import_kernel()
