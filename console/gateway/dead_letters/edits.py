"""Edits of a dead letter before its resend. Pure.

An edit lists changed fields only: None keeps a field, unlisted properties keep their values.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.errors import Unusable
from console.gateway.messages.masks import ORIGIN_PROPERTIES
from core_broker.limits import MESSAGE_BYTES_MAX, PROPERTIES_BYTES_MAX
from core_broker.message import properties as names

#: The longest body that a broker takes with its default settings, bytes.
BODY_BYTES_MAX = MESSAGE_BYTES_MAX
TAGS_CHARS_MAX = 255
KEYS_CHARS_MAX = 1_024
PROPERTIES_MAX = 64
PROPERTY_CHARS_MAX = 4_096
#: Separators of the properties' text form: forbidden in names and values.
_SEPARATORS = (names.NAME_VALUE_SEPARATOR, names.PROPERTY_SEPARATOR)


@dataclass(frozen=True, slots=True)
class Edit:
    """`properties` are set, `removed` are deleted; an empty tag or no keys delete tag or keys."""

    body: bytes | None = None
    tags: str | None = None
    keys: tuple[str, ...] | None = None
    properties: tuple[tuple[str, str], ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self == Edit()

    def applied(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties of the message to send."""
        kept = {name: value for name, value in properties.items() if name not in self.removed}
        if self.tags is not None:
            kept[names.PROPERTY_TAGS] = self.tags
        if self.keys is not None:
            kept[names.PROPERTY_KEYS] = names.KEY_SEPARATOR.join(self.keys)
        kept |= dict(self.properties)
        return {name: value for name, value in kept.items() if value}


NO_EDIT = Edit()


def checked(edit: Edit) -> Edit:
    """Return the edit; raise Unusable when no broker could store the edited message."""
    if edit.body is not None and len(edit.body) > BODY_BYTES_MAX:
        raise Unusable(format_lazy(_("A body has at most {most} bytes."), most=BODY_BYTES_MAX))
    _check_text(_("tag"), edit.tags or "", TAGS_CHARS_MAX)
    _check_text(_("keys"), " ".join(edit.keys or ()), KEYS_CHARS_MAX)
    if len(edit.properties) + len(edit.removed) > PROPERTIES_MAX:
        raise Unusable(
            format_lazy(_("At most {most} properties can be changed."), most=PROPERTIES_MAX)
        )
    for name in (*dict(edit.properties), *edit.removed):
        _check_text(_("name of a property"), name, PROPERTIES_BYTES_MAX // 128)
        # The original topic selects the masking rules: an edit must not change the topic.
        if not name or name in names.RESERVED_PROPERTIES or name in ORIGIN_PROPERTIES:
            raise Unusable(
                format_lazy(
                    _("The property “{name}” belongs to RocketMQ; it cannot be changed here."),
                    name=name,
                )
            )
    for name, value in edit.properties:
        _check_text(name, value, PROPERTY_CHARS_MAX)
    return edit


def _check_text(what: object, text: str, chars_max: int) -> None:
    if len(text) > chars_max:
        raise Unusable(
            format_lazy(_("The {what} has more than {most} characters."), what=what, most=chars_max)
        )
    if any(separator in text for separator in _SEPARATORS) or "\x00" in text:
        raise Unusable(
            format_lazy(_("The {what} holds a character that separates properties."), what=what)
        )
