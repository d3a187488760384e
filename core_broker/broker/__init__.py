"""One broker: assembly of the parts, start and stop.

assembly      creates and connects the parts
lifecycle     starts and stops the parts in order
registration  registers the broker at the name servers, through one namesrv_link per name server
saving        writes the tables below config/ off the event loop
jobs          periodic jobs
truncation    drops the end of the log with everything derived from it
exposure      readiness, metrics and internal tables on the side port

Under controllers, which choose the role of the running broker:

controllers, broker_identity         requests to the controllers; the id that they assigned
replica_manager, sync_state_reports  follow the controllers, and report the sync-state set
role_changes                         fenced, slave, master: one step after the other
"""

from core_broker.broker.lifecycle import Broker

__all__ = ["Broker"]
