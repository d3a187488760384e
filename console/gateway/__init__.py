"""The only door to clusters: pages, REST resources, feeds and jobs all ask here.

    from console.gateway import gateway
    answer = gateway.cluster("local").ask(brokers.broker_rows)

`questions.py` says how questions and commands are written; each area keeps its own in
`console/gateway/<area>.py`. Answers are typed read models in which "unknown" is None, never -1 or
0. What goes wrong is a GatewayError with a status, a cause and a hint; a broker that failed while
others answered is named in `Answer.failures`.
"""

from console.gateway.engine.answers import Answer, BrokerFailure, Partial, merge_failures, now_ms
from console.gateway.engine.clusters import Cluster, Gateway, gateway
from console.gateway.engine.errors import (
    AlreadyThere,
    Changed,
    ClusterUnreachable,
    GatewayError,
    NotAllowedNow,
    NotThere,
    Refused,
    TooSlow,
    UnknownCluster,
    Unusable,
)
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, Desk

__all__ = [
    "AlreadyThere",
    "Answer",
    "BrokerFailure",
    "BrokerRef",
    "Changed",
    "Cluster",
    "ClusterUnreachable",
    "Desk",
    "Gateway",
    "GatewayError",
    "NotAllowedNow",
    "NotThere",
    "Partial",
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
