"""The error of rules that cannot be used."""

from core_broker.errors import GantryError


class RulesError(GantryError):
    """A rule of an access control file or command is not valid. The text quotes no secret."""
