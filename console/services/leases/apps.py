"""The leases of periodic work."""

from django.apps import AppConfig


class LeasesConfig(AppConfig):
    name = "console.services.leases"
    label = "leases"
