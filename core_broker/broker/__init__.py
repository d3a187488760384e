"""One broker: its parts put together, its start and its stop.

assembly      makes the parts and lets them know each other
lifecycle     starts and stops them in order
registration  keeps the name servers informed, each by a namesrv_link
saving        writes the tables under config/ off the event loop
jobs          what happens by the clock
exposure      readiness, metrics and internals on the side port
"""

from core_broker.broker.lifecycle import Broker

__all__ = ["Broker"]
