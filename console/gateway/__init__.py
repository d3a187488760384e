"""The only entry point to clusters for pages, REST resources, feeds and jobs.

    from console.gateway import gateway
    from console.gateway.brokers.listing import broker_rows
    answer = gateway.cluster("local").ask(broker_rows)

engine/            event-loop thread, cluster sessions, answer cache, errors
brokers/ topics/   questions and commands by noun: also groups/, clients.py, messages/,
                   dead_letters/, pending/, traces/, offsets/, and over all of them
                   overview.py and search.py

`engine/questions.py` says how to write a question or a command. Answers are typed read models in
which "unknown" is None, never -1 or 0. Errors are GatewayErrors with a status, a cause and a hint.
When some brokers fail and others answer, `Answer.failures` names the failed brokers.
"""

from console.gateway.engine.answers import Answer, BrokerFailure, Partial, merge_failures, now_ms
from console.gateway.engine.clusters import Cluster, Gateway, gateway
from console.gateway.engine.errors import (
    AlreadyExists,
    Busy,
    ClusterUnreachable,
    GatewayError,
    MaskedFields,
    NotAllowedNow,
    NotFound,
    PreconditionFailed,
    ReadOnly,
    Refused,
    TooSlow,
    UnknownCluster,
    Unusable,
)
from console.gateway.engine.known_brokers import KnownBroker
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.engine.signing import Credentials

__all__ = [
    "AlreadyExists",
    "Answer",
    "BrokerFailure",
    "BrokerRef",
    "Busy",
    "Cluster",
    "ClusterSession",
    "ClusterUnreachable",
    "Credentials",
    "Gateway",
    "GatewayError",
    "KnownBroker",
    "MaskedFields",
    "NotAllowedNow",
    "NotFound",
    "Partial",
    "PreconditionFailed",
    "ReadOnly",
    "Refused",
    "TooSlow",
    "UnknownCluster",
    "Unusable",
    "command",
    "gateway",
    "merge_failures",
    "now_ms",
    "question",
]
