"""Forms of configured resources."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

from django.forms import BoundField

from console.frame.forms import BrokersForm
from console.gateway import BrokerRef


class ResourceForm(BrokersForm):
    """Settings of a resource, and the brokers to change."""

    #: Field names by form row. The field of the brokers is appended.
    layout: ClassVar[tuple[tuple[str, ...], ...]]

    @classmethod
    def filled(cls, configs: Sequence[tuple[BrokerRef, Any]], data: Any = None) -> Self:
        """The form with the present settings; the first broker's settings where brokers differ."""
        first = configs[0][1]
        form = cls(data, initial=cls.initial_of(first))
        form.offer_present(first)
        form.offer_brokers([ref.name for ref, _config in configs])
        return form

    @classmethod
    def initial_of(cls, config: Any) -> dict[str, Any]:
        """Field values of a broker's configuration."""
        return {name: getattr(config, name) for row in cls.layout for name in row}

    def offer_present(self, config: Any) -> None:
        """Add choices for present values outside the standard choices."""

    def settings(self) -> Any:
        """The settings for the gateway. Requires a valid form."""
        raise NotImplementedError

    def rows(self) -> Iterable[list[BoundField]]:
        """The fields by form row."""
        if "name" in self.fields:
            yield [self["name"]]
        for row in self.layout:
            yield [self[name] for name in row]
        yield [self["brokers"]]
