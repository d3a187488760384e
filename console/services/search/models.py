"""Saved views: addresses of console pages, for the owner or for all users."""

from django.conf import settings
from django.db import models

ADDRESS_CHARS_MAX = 2_000
NAME_CHARS_MAX = 80
#: Maximum number of saved views per user.
SAVED_VIEWS_MAX = 100


class SavedView(models.Model):
    """A console page by address, including topic, filter, order and time range."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    #: Path and query relative to the console's base URL, independent of host and sub-path.
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
