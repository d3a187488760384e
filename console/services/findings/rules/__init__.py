"""The rules, in the order of the page. Pure: a rule maps evidence to findings, without I/O.

A rule is a generator with an id and a title (`rule.py`):

    @rule("broker-down", _("All brokers answer"))
    def broker_down(evidence: Evidence) -> Results:
        yield from gaps(evidence.snapshot.brokers)
        ...
        yield Finding(...)

The modules are grouped by noun. To add a rule, write the function and enter it in RULES.
"""

from console.services.findings.rules import (
    brokers,
    consumption,
    groups,
    members,
    own,
    replication,
    settings,
    topics,
)
from console.services.findings.rules.rule import Evidence, Rule, evaluate

RULES: tuple[Rule, ...] = (
    brokers.broker_down,
    brokers.name_server_down,
    brokers.disk_full,
    brokers.clock_offset,
    brokers.certificate_expiry,
    replication.replica_missing,
    replication.replica_behind,
    replication.replica_set_without_master,
    replication.controllers_without_quorum,
    replication.controller_down,
    groups.group_offline,
    groups.group_lag,
    groups.dead_letters_growing,
    groups.group_drift,
    members.subscription_conflict,
    members.queue_stuck,
    members.queues_skewed,
    members.client_idle,
    consumption.consumer_slow,
    consumption.rebalance_storm,
    topics.topic_without_consumers,
    topics.unread_queues,
    topics.topic_drift,
    topics.one_broker,
    settings.settings_drift,
    settings.auto_create,
    own.console_disk_full,
)

__all__ = ["RULES", "Evidence", "Rule", "evaluate"]
