"""Changes of schemas and rules, and the decoder of a cluster."""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame.permissions import PATTERN_CHARS_MAX, STARS_MAX
from console.frame.versions import locked, version_of
from console.gateway import Cluster, NotAllowedNow, NotFound, now_ms
from console.gateway.changes import check_unchanged
from console.gateway.messages.schemas import decoder
from console.gateway.messages.schemas.bounds import SCHEMA_BYTES_MAX, SchemaError
from console.gateway.messages.schemas.decoder import Decoder, Format, Schema, read_schema
from console.gateway.messages.schemas.framing import Framing
from console.services.schemas.compiling import compiled
from console.services.schemas.models import NAME_CHARS_MAX, BodyRule, BodySchema

#: Maximum number of schemas of the console; compiled schemas stay in memory.
SCHEMAS_MAX: Final = 50
#: Maximum number of rules of a cluster.
RULES_MAX: Final = 100
#: Maximum length of the reasons why a schema is unusable, characters.
FAULT_CHARS_MAX: Final = 2_000
GONE: Final = _("There is no such rule for this cluster.")
NO_SCHEMA: Final = _("There is no such body schema.")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """Values of a rule from a form or a request."""

    topic: str
    schema: str
    type_name: str
    framing: str


@lru_cache(maxsize=SCHEMAS_MAX)
def _compiled(digest: str, kind: str) -> Schema | None:
    content = BodySchema.objects.filter(digest=digest).values_list("content", flat=True).first()
    return None if content is None else read_schema(kind, bytes(content))


def decoder_of(cluster: str) -> Decoder:
    """Return the rules of a cluster. Reads the database."""
    rows = BodyRule.objects.filter(cluster=cluster).values_list(
        "topic", "schema__format", "type_name", "framing", "schema__digest"
    )
    rules = [
        decoder.BodyRule(
            topic, Format(kind), type_name, Framing(framing), digest, _compiled(digest, kind)
        )
        for topic, kind, type_name, framing, digest in rows
    ]
    return Decoder(tuple(sorted(rules, key=lambda each: each.rank)))


def decoder_for(cluster: Cluster) -> Decoder:
    """Return the rules of a cluster for the reader of its messages. Reads the database."""
    found = decoder_of(cluster.name)
    return found if cluster.mask is None else found.seen_through(cluster.mask())


def schemas_of(cluster: str) -> list[BodySchema]:
    return list(BodySchema.objects.filter(cluster=cluster).defer("content"))


def rules_of(cluster: str) -> list[BodyRule]:
    return list(
        BodyRule.objects.filter(cluster=cluster).select_related("schema").defer("schema__content")
    )


def schema_or_none(cluster: str, name: str) -> BodySchema | None:
    return BodySchema.objects.filter(cluster=cluster, name=name.replace("\x00", "")).first()


def schema_named(cluster: str, name: str) -> BodySchema:
    found = schema_or_none(cluster, name)
    if found is None:
        raise NotFound(NO_SCHEMA)
    return found


def rule_numbered(cluster: str, number: int) -> BodyRule:
    rows = BodyRule.objects.filter(cluster=cluster, pk=number).select_related("schema")
    found = rows.first() if number < 2**63 else None
    if found is None:
        raise NotFound(GONE)
    return found


def types_of(schema: BodySchema) -> tuple[str, ...]:
    """Return the message types of a schema."""
    compiled = _compiled(schema.digest, schema.format)
    return () if compiled is None else compiled.types


def schema_version(schema: BodySchema | None) -> str:
    """Return the version of a schema as ETag; empty for a schema that does not exist."""
    return "" if schema is None else version_of(schema.state)


def save_schema(
    cluster: str,
    name: str,
    kind: str,
    content: bytes,
    by: Any,
    *,
    is_source: bool = False,
    expected: str | None = None,
) -> BodySchema:
    """Create or replace a schema.

    A source of Protobuf is compiled, and its descriptor set stored. Raises ValidationError,
    NotAllowedNow, and PreconditionFailed when the schema has another version than `expected`.
    """
    if len(name) > NAME_CHARS_MAX or not _NAME.fullmatch(name):
        wrong = _("Letters, digits, “.”, “_” and “-”, at most %(most)d characters.")
        raise ValidationError({"name": wrong % {"most": NAME_CHARS_MAX}})
    _check_size(content)
    try:
        if is_source:
            content = compiled(content)
            _check_size(content)
        types = read_schema(kind, content).types
    except SchemaError as fault:
        raise ValidationError({"content": str(fault)[:FAULT_CHARS_MAX].splitlines()}) from fault
    with transaction.atomic():
        named = BodySchema.objects.select_for_update().filter(cluster=cluster, name=name)
        found = named.first()
        check_unchanged(expected, schema_version(found))
        if found is None and BodySchema.objects.count() >= SCHEMAS_MAX:
            text = _("At most {most} body schemas are possible; delete one first.")
            raise NotAllowedNow(format_lazy(text, most=SCHEMAS_MAX))
        if found is not None:
            _check_rules_fit(found, kind, types)
        row = found or BodySchema(cluster=cluster, name=name)
        row.format, row.content, row.size_bytes = kind, content, len(content)
        row.digest, row.type_count = hashlib.sha256(content).hexdigest(), len(types)
        row.changed_ms, row.changed_by = now_ms(), by.get_username()
        try:
            with transaction.atomic():
                row.save()
        except IntegrityError:  # created by another request since the check
            text = _("Somebody else has just saved the schema “{name}”; upload the file again.")
            raise NotAllowedNow(format_lazy(text, name=name)) from None
    return row


def _check_size(content: bytes) -> None:
    if not 0 < len(content) <= SCHEMA_BYTES_MAX:
        wrong = _("A schema has 1 to %(most)d bytes.")
        raise ValidationError({"content": wrong % {"most": SCHEMA_BYTES_MAX}})


def _check_rules_fit(schema: BodySchema, kind: str, types: tuple[str, ...]) -> None:
    """Raise NotAllowedNow for new contents without the types of the rules."""
    for rule in schema.rules.all():
        if kind != schema.format or (rule.type_name and rule.type_name not in types):
            text = _("The rule for “{topic}” needs type “{type}”, which the new contents lack.")
            raise NotAllowedNow(format_lazy(text, topic=rule.topic, type=rule.type_name or kind))


@transaction.atomic
def delete_schema(schema: BodySchema, expected: str | None = None) -> None:
    """Delete a schema.

    Raises NotAllowedNow while a rule uses the schema, PreconditionFailed when the schema has
    another version than `expected`.
    """
    row = locked(schema, NO_SCHEMA)
    check_unchanged(expected, schema_version(row))
    used = row.rules.first()
    if used is not None:
        text = _("The rule for “{topic}” uses the schema. Delete the rule first.")
        raise NotAllowedNow(format_lazy(text, topic=used.topic))
    row.delete()


@transaction.atomic
def delete_rule(rule: BodyRule, expected: str | None = None) -> None:
    """Raises PreconditionFailed when the rule has another version than `expected`."""
    row = locked(rule, GONE)
    check_unchanged(expected, version(row))
    row.delete()


def version(rule: BodyRule) -> str:
    """Return the version of a rule for forms and as ETag."""
    return version_of(rule.state)


@transaction.atomic
def save_rule(
    cluster: str, rule: BodyRule | None, draft: RuleDraft, by: Any, expected: str | None = None
) -> BodyRule:
    """Create or change a rule.

    Raises ValidationError, NotAllowedNow, and PreconditionFailed when the rule has another version
    than `expected`.
    """
    if rule is not None:
        rule = locked(rule, GONE)
        check_unchanged(expected, version(rule))
    schema = BodySchema.objects.filter(cluster=cluster, name=draft.schema).first()
    wrong: dict[str, Any] = {}
    topic = draft.topic
    if not 0 < len(topic) <= PATTERN_CHARS_MAX or not topic.isprintable() or " " in topic:
        wrong["topic"] = _("A topic, or a pattern with “*” and without blanks.")
    elif topic.count("*") > STARS_MAX:
        wrong["topic"] = _("At most %(most)d “*”.") % {"most": STARS_MAX}
    elif BodyRule.objects.filter(cluster=cluster, topic=topic).exclude(
        pk=0 if rule is None else rule.pk
    ):
        wrong["topic"] = _("Another rule has this pattern.")
    if schema is None:
        wrong["schema"] = NO_SCHEMA
    else:
        wrong |= _wrong_type(schema, draft)
    if wrong:
        raise ValidationError(wrong)
    if rule is None and BodyRule.objects.filter(cluster=cluster).count() >= RULES_MAX:
        text = _("At most {most} rules are possible; delete one first.")
        raise NotAllowedNow(format_lazy(text, most=RULES_MAX))
    row = rule or BodyRule(cluster=cluster)
    assert schema is not None  # otherwise wrong
    row.topic, row.schema, row.type_name = topic, schema, draft.type_name
    row.framing = draft.framing
    row.changed_ms, row.changed_by = now_ms(), by.get_username()
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:  # saved by another request since the check
        raise ValidationError({"topic": _("Another rule has this pattern.")}) from None
    return row


def _wrong_type(schema: BodySchema, draft: RuleDraft) -> dict[str, Any]:
    if draft.framing == Framing.DELIMITED and schema.format == Format.AVRO:
        return {"framing": _("Avro has no length-delimited messages.")}
    is_whole = not draft.type_name and schema.format == Format.AVRO
    if is_whole or draft.type_name in types_of(schema):
        return {}
    return {"type_name": _("The schema has no such type. Open the schema for its types.")}
