"""The area of dead letters."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from console.areas import AreaConfig


class DeadLettersConfig(AreaConfig):
    name = "console.deadletters"
    label = "deadletters"
    title = _("Dead letters")
    icon = "skull"
