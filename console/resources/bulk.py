"""Acting on many things at once: each has a result of its own, and one that fails stops no other.

results = each(names, lambda name: self.cluster.do(delete_topic, name))
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
    """How it went with one thing; `error` is None where all its brokers did it."""

    name: str
    result: str
    error: str | None
    problem: str | None = None


def each(names: Iterable[str], act: Callable[[str], Sequence[BrokerOutcome]]) -> list[ItemResult]:
    """Act on each name once, in order."""
    return [_one(name, act) for name in dict.fromkeys(names)]


def _one(name: str, act: Callable[[str], Sequence[BrokerOutcome]]) -> ItemResult:
    try:
        outcomes = act(name)
    except GatewayError as trouble:
        return ItemResult(name, "failed", str(trouble.detail), trouble.kind)
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if failed:
        reasons = "; ".join(f"{outcome.broker}: {outcome.error}" for outcome in failed)
        return ItemResult(name, "failed", reasons, "broker")
    return ItemResult(name, "done", None)


def would(results: Iterable[ItemResult]) -> list[ItemResult]:
    """The results of a dry run: what was not refused would be done."""
    return [replace(one, result="would") if one.result == "done" else one for one in results]


class NamesSerializer(BodySerializer):
    """Which things to act on."""

    names = serializers.ListField(
        child=serializers.CharField(max_length=NAME_CHARS_MAX),
        min_length=1,
        max_length=NAMES_MAX,
        help_text=f"Up to {NAMES_MAX}; each is acted on once.",
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Tell what would become of each, and do nothing."
    )


class DeleteNamesSerializer(NamesSerializer):
    confirm = serializers.IntegerField(
        required=False, help_text="How many names there are. Needed when clients are connected."
    )


class ItemResultSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    result = serializers.ChoiceField(choices=["done", "failed", "would"])
    error = serializers.CharField(allow_null=True)
    problem = serializers.CharField(
        allow_null=True, help_text="The kind of the error, such as protected or not-found."
    )


class BulkSerializer(serializers.Serializer[Any]):
    """A result per name. With any failure among them the status is 207."""

    results = ItemResultSerializer(many=True)
    done = serializers.IntegerField()
    failed = serializers.IntegerField()


def body(results: Sequence[ItemResult]) -> dict[str, Any]:
    return {
        "results": ItemResultSerializer(results, many=True).data,
        "done": sum(one.result == "done" for one in results),
        "failed": sum(one.result == "failed" for one in results),
    }


def status(results: Sequence[ItemResult]) -> int:
    return 207 if any(one.result == "failed" for one in results) else 200


def read_names(given: Sequence[str]) -> list[str]:
    """Names from a form, each once and no more than NAMES_MAX."""
    return [name[:NAME_CHARS_MAX] for name in dict.fromkeys(given) if name][:NAMES_MAX]


def told(results: Sequence[ItemResult]) -> str:
    done = sum(one.result == "done" for one in results)
    return _("%(done)d of %(all)d done.") % {"done": done, "all": len(results)}
