"""Texts of `core_broker` about documents of definitions, in the language of the reader.

`core_broker` knows no catalogue: its errors keep template and values (`FormattedText`). A test
compares the templates below with those of the source.
"""

from typing import Any, Final

from django.utils.translation import gettext, gettext_noop

from core_broker.errors import FormattedText

TEXTS: Final = (
    gettext_noop("line {number}: "),
    gettext_noop("{line}more than {most} keys and values; {remedy}."),
    gettext_noop("apply the definitions in several documents"),
    gettext_noop("{line}no YAML: {problem}"),
    gettext_noop("a value begins with *; quote the value"),
    gettext_noop("no YAML: the version of %YAML is not supported"),
    gettext_noop("{line}{name} is no map of keys and values."),
    gettext_noop("{line}a key of {name} is no text."),
    gettext_noop("{line}{name} has the key {key!r} twice."),
    gettext_noop("{line}{name} is no list; write each item after `- `."),
    gettext_noop("{line}{name} is no text."),
    gettext_noop("{line}{name} is neither true nor false."),
    gettext_noop("{line}{name} is no number."),
    gettext_noop(
        "{line}{name} is read differently by RocketMQ 4 and 5 ({kind} in YAML 1.1); quote the "
        "value."
    ),
    gettext_noop("{line}anchors and aliases are not supported."),
    gettext_noop("{line}the tag {tag} is not supported."),
    gettext_noop("{kinds} left out: {reason}"),
    gettext_noop("The document has {size} bytes; the maximum is {most} MiB."),
    gettext_noop("The document is not UTF-8."),
    gettext_noop("The document is empty; the first line is “format: {format}”."),
    gettext_noop("The document has no “format: {format}”."),
    gettext_noop("the document"),
    gettext_noop("a map"),
    gettext_noop("a value"),
    gettext_noop("{name} of {kind}"),
    gettext_noop("an entry of {name}"),
    gettext_noop("{line}format is not {format}."),
    gettext_noop("More than {most} objects; apply several documents."),
    gettext_noop("{line}{place} has no key {key!r}; did you mean {near!r}?"),
    gettext_noop("{line}{place} has no key {key!r}; known keys: {names}."),
    gettext_noop("{line}a name in {kind} is empty or too long."),
    gettext_noop("{line}brokers of {name} names no broker."),
    gettext_noop("{line}{name} is no number from {low} to {high}."),
    gettext_noop("{line}{name} is none of {words}."),
    gettext_noop("{line}{place} has no {key}."),
    gettext_noop("{line}decision is neither Allow nor Deny."),
    gettext_noop("{line}{name} is a list or map instead of one value."),
    gettext_noop("{line}{name} has more than {most} characters."),
    gettext_noop("The cluster has no broker {names}."),
    gettext_noop(
        "A new user needs a password ({names}): create the user, or add the key password."
    ),
    gettext_noop("not readable: {reason}"),
    gettext_noop("{name} has a map of fields per rule."),
    gettext_noop("receivers is no list of at most {most} names."),
    gettext_noop("This console has no receiver {names}."),
    gettext_noop("{name} has maps of labels by name under {kinds}."),
    gettext_noop("{kind} of {name} is no map of names with labels."),
    gettext_noop("{name} has lists of names under {kinds}."),
    gettext_noop("{kind} of {name} is no list of names."),
)


def localized(text: Any) -> str:
    """Return the text in the language of the reader; other texts, such as those of brokers and
    lazy translations, as they are."""
    if isinstance(text, FormattedText):
        values = {
            name: localized(value) if isinstance(value, FormattedText) else value
            for name, value in text.values.items()
        }
        return gettext(text.template).format(**values)
    return gettext(text) if text in TEXTS else str(text)
