"""REST resource of access checks, with the form of the page."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import AnsweredSerializer
from console.api.views import ClusterResource, told_with
from console.areas.acl_users.checks import ACCOUNT_CHARS_MAX, ACTIONS, AccessCheckForm
from console.frame.access import Need, needs
from console.gateway.acl_users.decisions import BrokerDecision, access_decisions
from console.gateway.acl_users.entries import NAME_CHARS_MAX
from core_broker.auth.contracts import Check
from core_broker.auth.explanation import Outcome


def _text(name: str, description: str, most: int, *, required: bool = False) -> OpenApiParameter:
    schema = {"type": "string", "maxLength": most}
    return OpenApiParameter(name, schema, required=required, description=description)


PARAMETERS = [
    _text(
        "account",
        "User name (ACL 2.0) or access key (ACL 1.0). Empty: the client does not sign.",
        ACCOUNT_CHARS_MAX,
    ),
    OpenApiParameter(
        "action",
        OpenApiTypes.STR,
        required=True,
        enum=list(ACTIONS),
        description="The request of the client. The administrative actions stand for their kind.",
    ),
    _text("topic", "For publish, consume, create-topic and delete-topic.", NAME_CHARS_MAX),
    _text("group", "Consumer group, for consume and delete-group.", NAME_CHARS_MAX),
    OpenApiParameter(
        "address",
        OpenApiTypes.STR,
        required=True,
        description="IP address of the client, as the broker sees the address.",
    ),
]


class DecidingRuleSerializer(serializers.Serializer[Any]):
    """The rule that decides about a resource."""

    resource = serializers.CharField(
        help_text="`Topic:name`, `Group:name` or `Cluster:name`; empty for the account itself."
    )
    rule = serializers.CharField(help_text="As the operator wrote the rule, or a fixed text.")


class CheckStepSerializer(serializers.Serializer[Any]):
    """A check on the way to the decision."""

    check = serializers.ChoiceField(choices=[check.value for check in Check])
    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    resource = serializers.CharField(help_text="The resource of `permissions`, else empty.")
    rules = serializers.ListField(
        child=serializers.CharField(),
        help_text="Matching rules, at most 20; the first one decides.",
    )


class CheckPathSerializer(serializers.Serializer[Any]):
    """The checks of one generation of access control, in their order."""

    generation = serializers.CharField(help_text="`ACL 1.0` or `ACL 2.0`.")
    steps = CheckStepSerializer(many=True)


class BrokerDecisionSerializer(serializers.Serializer[Any]):
    """The decision of a broker process."""

    broker = serializers.CharField(help_text="Broker name; `name:id` for a slave.")
    addr = serializers.CharField()
    allowed = serializers.BooleanField(allow_null=True, help_text="null: unknown.")
    unknown = serializers.CharField(allow_null=True, help_text="Why the decision is unknown.")
    rules = DecidingRuleSerializer(many=True)
    code = serializers.IntegerField(
        allow_null=True, help_text="RocketMQ's code of the refusal; null if allowed or unknown."
    )
    code_name = serializers.CharField(allow_null=True)
    remark = serializers.CharField(help_text="The broker's remark of the refusal.")
    paths = CheckPathSerializer(many=True, help_text="Empty: access control is off.")
    unreadable = serializers.ListField(
        child=serializers.CharField(),
        help_text="Resources of entries that cannot match, and are ignored.",
    )


class AccessCheckSerializer(AnsweredSerializer):
    """The decisions of all broker processes."""

    account = serializers.CharField()
    action = serializers.ChoiceField(choices=list(ACTIONS))
    topic = serializers.CharField()
    group = serializers.CharField()
    address = serializers.CharField()
    brokers = BrokerDecisionSerializer(many=True)


@needs(Need.ADMIN)
class AccessCheck(ClusterResource):
    @extend_schema(parameters=PARAMETERS, responses=AccessCheckSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """May an account publish, consume or administer from an address, and why.

        The signature counts as right. Decided by the rules that the brokers return: `allowed` is
        null for a broker that does not return its rules.
        """
        form = AccessCheckForm(request.query_params)
        if not form.is_valid():
            raise ValidationError(
                {name: list(map(str, texts)) for name, texts in form.errors.items()}
            )
        asked = form.question
        answer = self.cluster.ask(access_decisions, asked)
        body = {
            "account": asked.account,
            "action": form.cleaned_data["action"],
            "topic": asked.topic,
            "group": asked.group,
            "address": asked.address,
            "brokers": [_body(each) for each in answer.value],
            **told_with(answer),
        }
        return Response(AccessCheckSerializer(body).data)


def _body(decision: BrokerDecision) -> dict[str, Any]:
    body = asdict(decision)
    unknown = body.pop("unknown")
    return {
        **body,
        "allowed": body.pop("is_allowed"),
        "unknown": None if unknown is None else str(unknown),
        "rules": [rule._asdict() for rule in decision.rules],
        "paths": [
            {"generation": path.generation, "steps": [step._asdict() for step in path.steps]}
            for path in decision.paths
        ],
    }
