"""The area `masking`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig
from console.gateway import gateway


class MaskingConfig(AreaConfig):
    name = "console.services.masking"
    label = "masking"
    title = _("Masked fields")
    icon = "lock"

    def ready(self) -> None:
        from console.services.masking.rules import enabled_rules

        gateway.mask_rules = enabled_rules
