"""Bulk operations: a result per item; a failed item does not stop the operation.

results = apply_each(names, lambda name: self.cluster.do(delete_topic, name))
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from console.api.serializers import BodySerializer
from console.gateway import GatewayError
from console.gateway.changes import BrokerOutcome

NAMES_MAX = 200
NAME_CHARS_MAX = 255


@dataclass(frozen=True, slots=True)
class ItemResult:
    """Result of an operation on one item; `error` is None when all brokers succeeded."""

    name: str
    result: str
    error: str | None
    problem: str | None = None


def apply_each(
    names: Iterable[str], operation: Callable[[str], Sequence[BrokerOutcome]]
) -> list[ItemResult]:
    """Apply the operation once per name, in order."""
    return [_apply(name, operation) for name in dict.fromkeys(names)]


def _apply(name: str, operation: Callable[[str], Sequence[BrokerOutcome]]) -> ItemResult:
    try:
        outcomes = operation(name)
    except GatewayError as trouble:
        return ItemResult(name, "failed", str(trouble.detail), trouble.kind)
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if failed:
        reasons = "; ".join(f"{outcome.broker}: {outcome.error}" for outcome in failed)
        return ItemResult(name, "failed", reasons, "broker")
    return ItemResult(name, "done", None)


def dry_run(results: Iterable[ItemResult]) -> list[ItemResult]:
    """Results of a dry run: `would` in place of `done`."""
    return [
        replace(result, result="would") if result.result == "done" else result for result in results
    ]


class NamesSerializer(BodySerializer):
    """Names of the resources to change."""

    names = serializers.ListField(
        child=serializers.CharField(max_length=NAME_CHARS_MAX),
        min_length=1,
        max_length=NAMES_MAX,
        help_text=f"At most {NAMES_MAX} names; duplicates are ignored.",
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Return the expected results without a change."
    )


class DeleteNamesSerializer(NamesSerializer):
    confirm = serializers.IntegerField(
        required=False, help_text="Number of names. Required when clients are connected."
    )


class ItemResultSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    result = serializers.ChoiceField(choices=["done", "failed", "would"])
    error = serializers.CharField(allow_null=True)
    problem = serializers.CharField(
        allow_null=True, help_text="Error type, such as protected or not-found."
    )


class BulkSerializer(serializers.Serializer[Any]):
    """A result per name. The status is 207 when a result is `failed`."""

    results = ItemResultSerializer(many=True)
    done = serializers.IntegerField()
    failed = serializers.IntegerField()


def body(results: Sequence[ItemResult]) -> dict[str, Any]:
    return {
        "results": ItemResultSerializer(results, many=True).data,
        "done": sum(result.result == "done" for result in results),
        "failed": sum(result.result == "failed" for result in results),
    }


def status(results: Sequence[ItemResult]) -> int:
    return 207 if any(result.result == "failed" for result in results) else 200


def read_names(values: Sequence[str]) -> list[str]:
    """Names from a form, without duplicates, at most NAMES_MAX."""
    return [name[:NAME_CHARS_MAX] for name in dict.fromkeys(values) if name][:NAMES_MAX]


def summary(results: Sequence[ItemResult]) -> str:
    done = sum(result.result == "done" for result in results)
    return _("%(done)d of %(all)d done.") % {"done": done, "all": len(results)}
