"""Views that people saved: the address of any page of the console, for themselves or for all."""

from django.conf import settings
from django.db import models

ADDRESS_CHARS_MAX = 2_000
NAME_CHARS_MAX = 80
#: A user may save this many views.
SAVED_VIEWS_MAX = 100


class SavedView(models.Model):
    """A page with all that its address says: topic, filter, order, time."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    #: Below the console's own address, so that it holds when the console moves.
    address = models.CharField(max_length=ADDRESS_CHARS_MAX)
    cluster = models.CharField(max_length=255)
    is_shared = models.BooleanField(default=False)
    saved_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "message"  # its migrations made the table
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "cluster", "name"], name="one_saved_view_of_a_name"
            )
        ]

    def __str__(self) -> str:
        return self.name
