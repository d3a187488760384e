"""One broker: assembly of the parts, start and stop.

assembly      creates and connects the parts
lifecycle     starts and stops the parts in order
registration  registers the broker at the name servers, through one namesrv_link per name server
saving        writes the tables below config/ off the event loop
jobs          periodic jobs
exposure      readiness, metrics and internal tables on the side port
"""

from core_broker.broker.lifecycle import Broker

__all__ = ["Broker"]
