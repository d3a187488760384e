"""What a user may read of a cluster's definitions, by the permissions of the pages.

    topics, groups     the names that `topics:read` and `groups:read` permit
    users, acls        the names that `acl:read` permits
    alarms, masking    everything or nothing: `alarms:read`, `masking:read`
    labels, protection those of topics and groups, as above

A part that the user may not read is left out of exports, and a document cannot change the part: the
differences would show what is there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame.access import Need, may, readable_names
from console.frame.permissions import Action, Permission, Scope, Target
from core_broker.definitions.comparing import Item, refused
from core_broker.definitions.model import Document

#: Resource of the permission by kind.
RESOURCES: Final[Mapping[str, str]] = {
    "topics": "topics",
    "groups": "groups",
    "users": "acl",
    "acls": "acl",
}


@dataclass(frozen=True, slots=True)
class Reader:
    user: Any
    cluster: str

    def may_read(self, resource: str) -> bool:
        """Whether the user may read all objects of the resource."""
        return may(self.user, Need.READ, Target(resource, self.cluster))

    def names(self, kind: str) -> Callable[[str], bool]:
        """A test of names; that of a list of access control is the name of its user."""
        is_readable = readable_names(self.user, RESOURCES[kind], self.cluster)
        if kind == "acls":
            return lambda subject: is_readable(subject.partition(":")[2] or subject)
        return is_readable

    def visible(self, document: Document) -> Document:
        """The document without the names that the user may not read."""
        objects = {}
        for kind, found in document.objects.items():
            is_readable = self.names(kind)
            objects[kind] = {name: each for name, each in found.items() if is_readable(name)}
        return Document(objects, document.more, document.left_out)

    def split(self, document: Document) -> tuple[Document, tuple[Item, ...]]:
        """The part of a document that the user may compare, and an item for each other object."""
        wanted = self.visible(document)
        return wanted, tuple(
            self.refusal(kind, name, RESOURCES[kind])
            for kind, found in document.objects.items()
            for name in sorted(set(found) - set(wanted.objects[kind]))
        )

    def refusal(self, kind: str, name: str, resource: str) -> Item:
        """The item of an object that the user may not read."""
        return refused(kind, name, str(format_lazy(NOT_READABLE, needed=f"{resource}:read")))

    def notes(self, kinds: Iterable[str], sections: Mapping[str, str]) -> Iterator[Any]:
        """A sentence per part that is left out, wholly or by name, with the missing permission.

        `sections` has the resource of each further section.
        """
        for kind in kinds:
            resource = RESOURCES[kind]
            if self.may_read(resource):
                continue
            some = may(self.user, Need.READ, Target(resource, self.cluster, Scope.SOME))
            yield _note(kind, resource, ONLY_NAMES if some else LEFT_OUT)
        for name, resource in sections.items():
            if not self.may_read(resource):
                yield _note(name, resource, LEFT_OUT)


LEFT_OUT: Final = _("{part} left out: your role has no permission {needed}.")
ONLY_NAMES: Final = _("{part} in part: only the names that your role permits with {needed}.")
NOT_READABLE: Final = _("Your role may not read this object: the permission {needed} is missing.")


def _note(part: str, resource: str, text: Any) -> Any:
    return format_lazy(text, part=part, needed=Permission(resource, Action.READ))
